//! Derive macro of `sojourn_aqm::Snapshot`, which exports and describes it.

#![forbid(unsafe_code)]

mod item;

use item::{Fields, Item, Variants};
use proc_macro::TokenStream;
use std::fmt::Write;

const TRAIT: &str = "::sojourn_aqm::snapshot::Snapshot";

/// Derives `Snapshot` for a struct or an enum: every field is saved and loaded, in their order.
///
/// A field with `#[snapshot(skip)]` keeps the value that it was built with. A type that has one can
/// only be loaded in place.
#[proc_macro_derive(Snapshot, attributes(snapshot))]
pub fn snapshot(input: TokenStream) -> TokenStream {
    let code = Item::parse(input).map_or_else(
        |fault| format!("::core::compile_error!({fault:?});"),
        |item| if cfg!(feature = "snapshot") { implementation(&item) } else { refusal(&item) },
    );
    code.parse().expect("the generated code has balanced brackets")
}

/// The `impl` of `item` in a build without snapshots.
fn refusal(item: &Item) -> String {
    let Item { name, parameters, arguments, bounds, .. } = item;
    let [refused, result] = ["::sojourn_aqm::snapshot::refused()", "::sojourn_aqm::Result"];
    let [writer, reader] =
        ["::sojourn_aqm::snapshot::Writer", "::sojourn_aqm::snapshot::Reader<'_>"];
    format!(
        "#[automatically_derived]
        impl<{parameters}> {TRAIT} for {name}<{arguments}> where {bounds} {{
            fn layout() -> u64 {{ 0 }}
            fn layout_of(&self) -> u64 {{ 0 }}
            fn save_to(&self, _: &mut {writer}) -> {result}<()> {{ {refused} }}
            fn load_from(&mut self, _: &mut {reader}) -> {result}<()> {{ {refused} }}
            fn create_from(_: &mut {reader}) -> {result}<Self> {{ {refused} }}
        }}"
    )
}

/// The `impl` of `item`.
fn implementation(item: &Item) -> String {
    let Item { name, parameters, arguments, bounds, variants, hash, .. } = item;
    let [mut save, mut load, create] = [String::new(), String::new(), creation(item)];
    match variants {
        Variants::Struct(fields) => {
            let _ = write!(save, "let Self {} = self; {}", fields.pattern(), saving(fields));
            let _ = write!(load, "let Self {} = self; {}", fields.pattern(), loading(fields));
            load.push_str("::core::result::Result::Ok(())");
            save.push_str("::core::result::Result::Ok(())");
        }
        Variants::Enum(variants) => {
            let (mut saves, mut loads) = (String::new(), String::new());
            for (i, (variant, fields)) in variants.iter().enumerate() {
                let pattern = format!("Self::{variant} {}", fields.pattern());
                let _ = write!(saves, "{pattern} => {{ out.variant({i}); {} }}", saving(fields));
                let _ = write!(loads, "({i}, {pattern}) => {{ {} }}", loading(fields));
            }
            let _ = write!(save, "match self {{ {saves} }} ::core::result::Result::Ok(())");
            let _ = write!(
                load,
                "let variant = input.variant()?;
                match (variant, &mut *self) {{ {loads}
                    #[allow(unreachable_patterns)]
                    _ => *self = ({create})?,
                }}
                ::core::result::Result::Ok(())"
            );
        }
    }
    let prelude = match variants {
        Variants::Struct(_) => "",
        Variants::Enum(_) => "let variant = input.variant()?;",
    };
    let layouts = variants.fields().filter(|field| !field.skip);
    let layouts: String =
        layouts.map(|f| format!("<{} as {TRAIT}>::layout(),", f.of_type)).collect();
    format!(
        "#[automatically_derived]
        #[allow(unused_variables, clippy::all)]
        impl<{parameters}> {TRAIT} for {name}<{arguments}> where {bounds} {{
            fn layout() -> u64 {{ ::sojourn_aqm::snapshot::layout({hash}, &[{layouts}]) }}
            fn layout_of(&self) -> u64 {{ <Self as {TRAIT}>::layout() }}
            fn save_to(&self, out: &mut ::sojourn_aqm::snapshot::Writer)
                -> ::sojourn_aqm::Result<()> {{ {save} }}
            fn load_from(&mut self, input: &mut ::sojourn_aqm::snapshot::Reader<'_>)
                -> ::sojourn_aqm::Result<()> {{ {load} }}
            fn create_from(input: &mut ::sojourn_aqm::snapshot::Reader<'_>)
                -> ::sojourn_aqm::Result<Self> {{
                {prelude} {create}
            }}
        }}"
    )
}

/// Statements that save all fields.
fn saving(fields: &Fields) -> String {
    fields.kept().map(|f| format!("{TRAIT}::save_to({}, out)?;", f.binding)).collect()
}

/// Statements that load all fields in place.
fn loading(fields: &Fields) -> String {
    fields.kept().map(|f| format!("{TRAIT}::load_from({}, input)?;", f.binding)).collect()
}

/// Statements that end a function with a new value.
fn creation(item: &Item) -> String {
    let name = &item.name;
    let fresh = |path: &str, fields: &Fields| -> String {
        if fields.list.iter().any(|field| field.skip) {
            return format!("::core::result::Result::Err(input.not_created({name:?}))");
        }
        let value = |label: &str| format!("{label}: {TRAIT}::create_from(input)?,");
        let values: String = fields.list.iter().map(|field| value(&field.label)).collect();
        format!("::core::result::Result::Ok({path} {{ {values} }})")
    };
    match &item.variants {
        Variants::Struct(fields) => fresh("Self", fields),
        Variants::Enum(variants) => {
            let arm = |(i, (variant, fields)): (usize, &(String, Fields))| {
                format!("{i} => {},", fresh(&format!("Self::{variant}"), fields))
            };
            let arms: String = variants.iter().enumerate().map(arm).collect();
            let unknown = format!("::core::result::Result::Err(input.invalid({name:?}))");
            format!("match variant {{ {arms} _ => {unknown} }}")
        }
    }
}
