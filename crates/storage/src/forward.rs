//! Methods of a store over another one, each in a line: what it does not do itself, the one below does.
//!
//! ```text
//!   forward! { self, path => self.of(path);
//!       list() -> Result<Vec<PathBuf>>;     fn list(&self, path: &Path) -> Result<Vec<PathBuf>> { self.of(path).list(path) }
//!   }
//! ```
//!
//! With `by self.retry` the call is an argument of that method, behind the path, and the operation where one is given.

/// Writes such methods. The first argument of each is a path, which the expression before them may name.
macro_rules! forward {
    ($self:ident, $path:ident => $below:expr;
     $($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {$(
        fn $name(&$self, $path: &Path $(, $argument: $type)*) -> $result {
            $below.$name($path $(, $argument)*)
        }
    )*};
    ($self:ident, $path:ident => $below:expr, by $this:ident.$around:ident;
     $($name:ident($($argument:ident: $type:ty),*) -> $result:ty $(, $operation:literal)?;)*) => {$(
        fn $name(&$self, $path: &Path $(, $argument: $type)*) -> $result {
            $this.$around($($operation,)? $path, || $below.$name($path $(, $argument)*))
        }
    )*};
}

pub(crate) use forward;
