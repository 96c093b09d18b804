// Mistakes in the signature of a function, one a line.
macro_rules! mistakes {
    ($($name:ident: #[$($attribute:tt)*] [$($signature:tt)*])+) => {
        $(mod $name {
            use mcp_runtime::prelude::*;

            struct Db;

            #[$($attribute)*]
            #[allow(unused_variables)]
            $($signature)* {
                unimplemented!()
            }
        })+
    };
}
