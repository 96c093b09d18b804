//! Routes of the program itself.
