//! Secrets of the command line, kept out of the errors in a history.
//!
//! An error ends with a command that works as it is printed, with all that the user gave: on the terminal where the
//! user typed it, this shows nothing new. A history is kept and shown to others, so there `***` stands in its place.
//! Only errors, and what tasks printed, are changed: names of files must stay, or the job could not be resumed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::event::Event;

/// Texts that must not be written, each with what stands for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hidden(Vec<(String, String)>);

impl Hidden {
    /// Hides the first of each pair behind the second.
    pub fn new(pairs: Vec<(String, String)>) -> Self {
        Hidden(pairs)
    }

    /// Takes what is hidden out of the errors of an event.
    pub(super) fn take_out_of(&self, event: &mut Event) {
        if self.0.is_empty() {
            return;
        }
        match event {
            Event::AttemptFinished {
                error: Some(text), ..
            } => self.take_out_of_text(text),
            Event::JobFinished { report, .. } | Event::OutputPublishing { report, .. } => {
                for name in ["error", "warnings"] {
                    if let Some(value) = report.get_mut(name) {
                        self.take_out_of_value(value);
                    }
                }
            }
            _ => {}
        }
    }

    fn take_out_of_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.take_out_of_text(text),
            Value::Array(values) => values
                .iter_mut()
                .for_each(|value| self.take_out_of_value(value)),
            Value::Object(fields) => fields
                .values_mut()
                .for_each(|value| self.take_out_of_value(value)),
            _ => {}
        }
    }

    pub(super) fn take_out_of_text(&self, text: &mut String) {
        for (secret, told) in &self.0 {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), told);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_are_changed_and_nothing_else_is() {
        let hidden = Hidden::new(vec![("P=x".into(), "P=***".into())]);
        let mut finished = Event::JobFinished {
            status: "failed".into(),
            report: json!({"job_id": "P=x", "error": {"message": "run P=x", "details": {"again": ["a P=x"]}}}),
        };
        hidden.take_out_of(&mut finished);
        let Event::JobFinished { report, .. } = finished else {
            unreachable!()
        };
        let error = json!({"message": "run P=***", "details": {"again": ["a P=***"]}});
        assert_eq!(report, json!({"job_id": "P=x", "error": error}));
        let phase = Event::PhaseStarted {
            name: "P=x".into(),
            tasks: 0,
            bytes: 0,
            kept: 0,
        };
        let mut same = phase.clone();
        hidden.take_out_of(&mut same);
        assert_eq!(same, phase);
    }
}
