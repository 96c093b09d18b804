// Mistakes in the options of an item or in its parameters, one a line: the functions are the same otherwise.
macro_rules! mistakes {
    ($($name:ident: $(#[$($attribute:tt)*])+ ($($parameters:tt)*))+) => {
        $(mod $name {
            use mcp_runtime::prelude::*;

            struct Db;

            $(#[$($attribute)*])+
            #[allow(unused_variables)]
            async fn search($($parameters)*) -> String {
                String::new()
            }
        })+
    };
}
