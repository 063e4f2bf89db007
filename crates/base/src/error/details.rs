//! What an error has that is not in its paragraph: texts for people, and facts that the program itself looks at.
//!
//! In JSON and between processes, all are texts with names: only this file spells and parses them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A name and a text.
pub type NamedText = (Cow<'static, str>, String);

macro_rules! details {
    ($($(#[$doc:meta])* $fact:ident: $type:ty = $name:literal,)*) => {
        /// What is not in the paragraph of an error.
        ///
        /// ```
        /// use gristmill_base::error::Details;
        /// let json = r#"[["stderr","7"],["needed_bytes","64"]]"#;
        /// let details: Details = serde_json::from_str(json).unwrap();
        /// assert_eq!(details.needed_bytes, Some(64));
        /// assert_eq!(serde_json::to_string(&details).unwrap(), json);
        /// ```
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(from = "Vec<NamedText>", into = "Vec<NamedText>")]
        pub struct Details {
            /// What people read: a traceback, the end of a log.
            pub texts: Vec<NamedText>,
            $($(#[$doc])* pub $fact: Option<$type>,)*
        }

        impl From<Details> for Vec<NamedText> {
            fn from(details: Details) -> Self {
                let mut texts = details.texts;
                $(texts.extend(details.$fact.map(|fact| ($name.into(), fact.to_string())));)*
                texts
            }
        }

        impl From<Vec<NamedText>> for Details {
            fn from(texts: Vec<NamedText>) -> Self {
                let mut details = Details::default();
                for (name, text) in texts {
                    match &*name {
                        $($name => details.$fact = text.parse().ok(),)*
                        _ => details.texts.push((name, text)),
                    }
                }
                details
            }
        }
    };
}

details! {
    /// The option whose value is wrong.
    option: String = "option",
    /// What is equal if the same thing fails in the same way again.
    fingerprint: String = "fingerprint",
    /// The memory budget that would do.
    needed_bytes: u64 = "needed_bytes",
    /// Whether a store gave no answer.
    no_answer: bool = "no_answer",
    /// For how many seconds a store with too many requests wants us to wait; 0 where it says nothing.
    retry_after_s: u64 = "retry_after_s",
    /// Which error of S3 it is.
    s3_code: String = "s3_code",
    /// Which exception of Java's it is; `none` where nobody answered.
    hdfs_exception: String = "hdfs_exception",
    /// The task that is kept for `gristmill retry`.
    retry: u32 = "retry",
    /// What an agent has kept of a failed attempt; it goes no further than to the driver.
    on_agent: String = "on agent",
}
