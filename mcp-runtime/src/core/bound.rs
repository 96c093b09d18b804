//! Bounds of public methods, each with a message that says what to write: the standard library's name another trait, and
//! sometimes a fix that does not help.

/// Several texts: an array, a `Vec`, a slice or an iterator of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of texts",
    label = "not a list",
    note = "write an array, also for one: `[\"one\"]`; or a `Vec`, a slice or an iterator of texts"
)]
pub trait Texts {
    /// Makes each a `String`.
    fn into_texts(self) -> Vec<String>;
}

#[diagnostic::do_not_recommend]
impl<I> Texts for I
where
    I: IntoIterator,
    I::Item: Into<String>,
{
    fn into_texts(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

/// A function that sets options: `|limits| limits.rate("60/1m")`.
#[diagnostic::on_unimplemented(
    message = "`{Options}` are set by a function, which `{Self}` is not",
    label = "not a function of `{Options}`",
    note = "write `|options| options.name(value)`, as in `.limits(|limits| limits.rate(\"60/1m\"))` or `.info(|info| info.name(\"shop\"))`",
    note = "the address of HTTP is not an option: it follows `--http` on the command line, or `serve_http` in the program"
)]
pub trait Configure<Options>: FnOnce(Options) -> Options {}

#[diagnostic::do_not_recommend]
impl<Options, F: FnOnce(Options) -> Options> Configure<Options> for F {}
