//! The budget: memory is asked for by name before it is allocated, and given back on drop.
//!
//! One hard limit for the whole job. A reservation that does not fit is refused, and the refusal says who holds
//! what. Mapped input is counted apart: the operating system can take it back at any time.

mod process;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

pub use process::ProcessOwner;

use crate::error::{Error, JobOption, Kind, Result, show_bytes};
use crate::sync::lock;
pub use crate::sys::available::available_bytes;
pub use crate::sys::memory::resident_bytes;

/// The budget of a job, and what of it the process holds whatever the job does.
///
/// ```
/// use gristmill_base::budget::JobMemory;
/// let room = JobMemory { budget_bytes: 64_000_000, held_bytes: 10_000_000 };
/// assert_eq!((room.free_bytes(), room.less(4_000_000).free_bytes()), (54_000_000, 50_000_000));
/// assert_eq!(JobMemory::from(5).free_bytes(), 5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobMemory {
    /// What the user allows.
    pub budget_bytes: u64,
    /// What the process holds, which is part of it.
    pub held_bytes: u64,
}

impl JobMemory {
    /// What is left for the job's work.
    pub fn free_bytes(self) -> u64 {
        self.budget_bytes.saturating_sub(self.held_bytes)
    }

    /// The same with so much less for another purpose.
    #[must_use]
    pub fn less(self, bytes: u64) -> Self {
        JobMemory {
            budget_bytes: self.budget_bytes.saturating_sub(bytes),
            ..self
        }
    }
}

impl From<u64> for JobMemory {
    fn from(budget_bytes: u64) -> Self {
        JobMemory {
            budget_bytes,
            held_bytes: 0,
        }
    }
}

/// A limit on memory, shared by all tasks of a job.
///
/// ```
/// use gristmill_base::budget::Budget;
/// let budget = Budget::new(1000);
/// let entries = budget.reserve("entries", 800)?;
/// let refusal = budget.reserve("output buffers", 300).unwrap_err();
/// assert!(refusal.to_string().contains("entries 800"));
/// drop(entries);
/// budget.reserve("output buffers", 300)?;
/// assert_eq!((budget.used_bytes(), budget.peak_bytes()), (0, 800));
/// # Ok::<(), gristmill_base::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Budget {
    ledger: Arc<Mutex<Ledger>>,
}

#[derive(Debug)]
struct Ledger {
    limit_bytes: u64,
    used_bytes: u64,
    peak_bytes: u64,
    by_name: BTreeMap<&'static str, u64>,
}

impl Budget {
    /// A budget of `limit_bytes`.
    pub fn new(limit_bytes: u64) -> Self {
        let ledger = Ledger {
            limit_bytes,
            used_bytes: 0,
            peak_bytes: 0,
            by_name: BTreeMap::new(),
        };
        Budget {
            ledger: Arc::new(Mutex::new(ledger)),
        }
    }

    /// The budget of a job; what the process holds is taken from the beginning.
    pub fn of(room: JobMemory) -> Self {
        let budget = Budget::new(room.budget_bytes);
        {
            let mut ledger = budget.lock();
            ledger.used_bytes = room.held_bytes;
            ledger.peak_bytes = room.held_bytes;
            ledger.by_name.insert("the process itself", room.held_bytes);
        }
        budget
    }

    /// Reserves `bytes` for `name`, or says who holds the memory.
    pub fn reserve(&self, name: &'static str, bytes: u64) -> Result<Reservation> {
        self.reserve_in(&mut self.lock(), name, bytes)
    }

    fn reserve_in(
        &self,
        ledger: &mut Ledger,
        name: &'static str,
        bytes: u64,
    ) -> Result<Reservation> {
        if ledger.used_bytes + bytes > ledger.limit_bytes {
            return Err(ledger.refusal(name, bytes));
        }
        ledger.used_bytes += bytes;
        ledger.peak_bytes = ledger.peak_bytes.max(ledger.used_bytes);
        *ledger.by_name.entry(name).or_default() += bytes;
        Ok(Reservation {
            budget: self.clone(),
            name,
            bytes,
        })
    }

    /// Reserves `each` bytes for `name` as many times as there is room for, at most `most`; and says how often.
    ///
    /// ```
    /// use gristmill_base::budget::Budget;
    /// let budget = Budget::new(1000);
    /// let (granted, _memory) = budget.reserve_up_to("read ahead", 300, 8)?;
    /// assert_eq!((granted, budget.used_bytes()), (3, 900));
    /// assert_eq!(budget.reserve_up_to("read ahead", 300, 8)?.0, 0);
    /// # Ok::<(), gristmill_base::Error>(())
    /// ```
    pub fn reserve_up_to(
        &self,
        name: &'static str,
        each: u64,
        most: usize,
    ) -> Result<(usize, Reservation)> {
        let mut ledger = self.lock();
        let free = ledger.limit_bytes.saturating_sub(ledger.used_bytes);
        let granted = free.checked_div(each).unwrap_or(0).min(most as u64);
        let memory = self.reserve_in(&mut ledger, name, granted * each)?;
        Ok((granted as usize, memory))
    }

    /// Raises the peak to what is used here and these bytes: the peak of another process, which keeps within its share of the budget.
    pub fn count_peak_of_other(&self, bytes: u64) {
        let mut ledger = self.lock();
        ledger.peak_bytes = ledger.peak_bytes.max(ledger.used_bytes + bytes);
    }

    /// The limit.
    pub fn limit_bytes(&self) -> u64 {
        self.lock().limit_bytes
    }

    /// What is reserved now.
    pub fn used_bytes(&self) -> u64 {
        self.lock().used_bytes
    }

    /// The most that was ever reserved at once.
    pub fn peak_bytes(&self) -> u64 {
        self.lock().peak_bytes
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        // A panic elsewhere cannot leave the ledger half changed: nothing in here panics.
        lock(&self.ledger)
    }
}

impl Ledger {
    fn refusal(&self, name: &'static str, bytes: u64) -> Error {
        let holders: Vec<String> = self
            .by_name
            .iter()
            .map(|(name, bytes)| format!("{name} {}", show_bytes(*bytes)))
            .collect();
        let message = format!(
            "{name} needs {}; {} of {} are taken ({})",
            show_bytes(bytes),
            show_bytes(self.used_bytes),
            show_bytes(self.limit_bytes),
            holders.join(", ")
        );
        Error::new(Kind::Memory, "reserve memory", message)
            .advise_options("give a larger {}", [JobOption::Memory.named()])
    }
}

/// Memory that somebody may use, until dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Budget,
    name: &'static str,
    bytes: u64,
}

impl Reservation {
    /// How much it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut ledger = self.budget.lock();
        ledger.used_bytes -= self.bytes;
        if let Some(held) = ledger.by_name.get_mut(self.name) {
            *held -= self.bytes;
            if *held == 0 {
                ledger.by_name.remove(self.name);
            }
        }
    }
}
