//! Parser of a struct or enum: names and types of the fields, and generic parameters.

use proc_macro::{Delimiter, TokenStream, TokenTree};
use std::collections::VecDeque;

/// A struct or an enum.
pub struct Item {
    /// Name of the type.
    pub name: String,
    /// Generic parameters with their bounds.
    pub parameters: String,
    /// Names of the generic parameters.
    pub arguments: String,
    /// Bounds of a `where` clause.
    pub bounds: String,
    /// Fields.
    pub variants: Variants,
    /// Hash of names and types.
    pub hash: u64,
}

/// Fields of a struct, or of the variants of an enum.
pub enum Variants {
    /// Fields of a struct.
    Struct(Fields),
    /// Name and fields of each variant.
    Enum(Vec<(String, Fields)>),
}

impl Variants {
    /// All fields.
    pub fn fields(&self) -> impl Iterator<Item = &Field> {
        let (one, many) = match self {
            Variants::Struct(fields) => (Some(fields), &[][..]),
            Variants::Enum(variants) => (None, &variants[..]),
        };
        one.into_iter().chain(many.iter().map(|(_, fields)| fields)).flat_map(|f| &f.list)
    }
}

/// Fields of a struct or of a variant.
pub struct Fields {
    /// The fields, in their order.
    pub list: Vec<Field>,
}

/// A field.
pub struct Field {
    /// Name, or number in a tuple.
    pub label: String,
    /// Name of the variable for it in a pattern.
    pub binding: String,
    /// Type.
    pub of_type: String,
    /// True if it is not saved.
    pub skip: bool,
}

impl Fields {
    /// Pattern that binds each field that is saved. It names every field.
    pub fn pattern(&self) -> String {
        let binding = |field: &Field| match field.skip {
            true => format!("{}: _,", field.label),
            false => format!("{}: {},", field.label, field.binding),
        };
        format!("{{ {} }}", self.list.iter().map(binding).collect::<String>())
    }

    /// Fields that are saved.
    pub fn kept(&self) -> impl Iterator<Item = &Field> {
        self.list.iter().filter(|field| !field.skip)
    }
}

type Tokens = VecDeque<TokenTree>;

/// Tokens of `stream`. A fragment of a declarative macro is a group without brackets: its tokens
/// are put in its place.
fn flat(stream: TokenStream) -> Tokens {
    let tokens = stream.into_iter().map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => flat(group.stream()),
        token => Tokens::from([token]),
    });
    tokens.flatten().collect()
}

impl Item {
    /// Parses the item of a derive macro.
    pub fn parse(input: TokenStream) -> Result<Item, String> {
        let mut tokens: Tokens = flat(input);
        skip_attributes(&mut tokens);
        skip_visibility(&mut tokens);
        let keyword = word(&mut tokens)?;
        let name = word(&mut tokens)?;
        let (parameters, arguments, names) = generics(&mut tokens)?;
        let mut bounds: String =
            names.iter().map(|name| format!("{name}: {},", crate::TRAIT)).collect();
        let variants = match (keyword.as_str(), body(&mut tokens, &mut bounds)) {
            ("struct", None) => Variants::Struct(Fields { list: Vec::new() }),
            ("struct", Some((stream, named))) => Variants::Struct(fields(stream, named)?),
            ("enum", Some((stream, _))) => Variants::Enum(variants(stream)?),
            _ => return Err(format!("Snapshot cannot be derived for {keyword} {name}")),
        };
        let mut item = Item { name, parameters, arguments, bounds, variants, hash: 0 };
        item.hash = item.shape_hash();
        Ok(item)
    }

    /// Hash of the names and types of all fields that are saved.
    fn shape_hash(&self) -> u64 {
        let mut text = self.name.clone();
        let mut add = |part: &str| text.extend([part, ";"]);
        if let Variants::Enum(variants) = &self.variants {
            variants.iter().for_each(|(name, fields)| {
                add(name);
                fields.list.iter().for_each(|field| add(&field.label));
            });
        }
        for field in self.variants.fields().filter(|field| !field.skip) {
            add(&field.label);
            add(&field.of_type.replace(' ', ""));
        }
        // FNV-1a.
        let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
    }
}

fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == character)
}

fn is_word(token: Option<&TokenTree>, name: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident.to_string() == name)
}

fn word(tokens: &mut Tokens) -> Result<String, String> {
    match tokens.pop_front() {
        Some(TokenTree::Ident(ident)) => Ok(ident.to_string()),
        other => Err(format!("Snapshot: expected a name, not {other:?}")),
    }
}

/// Removes attributes; returns true if one of them is `#[snapshot(skip)]`.
fn skip_attributes(tokens: &mut Tokens) -> bool {
    let mut skip = false;
    while is_punct(tokens.front(), '#') {
        tokens.pop_front();
        let attribute = tokens.pop_front().map(|token| token.to_string()).unwrap_or_default();
        let text: String = attribute.chars().filter(|c| !c.is_whitespace()).collect();
        skip |= text == "[snapshot(skip)]";
    }
    skip
}

fn skip_visibility(tokens: &mut Tokens) {
    if is_word(tokens.front(), "pub") {
        tokens.pop_front();
        if let Some(TokenTree::Group(group)) = tokens.front()
            && group.delimiter() == Delimiter::Parenthesis
        {
            tokens.pop_front();
        }
    }
}

/// Removes and returns the tokens up to a comma outside angle brackets, without it.
fn up_to_comma(tokens: &mut Tokens) -> Vec<TokenTree> {
    let (mut depth, mut part, mut after_dash) = (0, Vec::new(), false);
    while let Some(token) = tokens.pop_front() {
        if let TokenTree::Punct(punct) = &token {
            match punct.as_char() {
                ',' if depth == 0 => break,
                '<' => depth += 1,
                '>' if !after_dash => depth -= 1,
                _ => {}
            }
        }
        after_dash = is_punct(Some(&token), '-');
        part.push(token);
    }
    part
}

fn text(tokens: Vec<TokenTree>) -> String {
    TokenStream::from_iter(tokens).to_string()
}

/// Removes the generic parameters; returns them with bounds, their names, and the names of types.
fn generics(tokens: &mut Tokens) -> Result<(String, String, Vec<String>), String> {
    let (mut parameters, mut arguments, mut types) = (String::new(), String::new(), Vec::new());
    if !is_punct(tokens.front(), '<') {
        return Ok((parameters, arguments, types));
    }
    tokens.pop_front();
    let (mut depth, mut inner) = (1, Tokens::new());
    while depth > 0 {
        let token = tokens.pop_front().ok_or("Snapshot: unbalanced generic parameters")?;
        depth += i32::from(is_punct(Some(&token), '<')) - i32::from(is_punct(Some(&token), '>'));
        inner.push_back(token);
    }
    inner.pop_back();
    while !inner.is_empty() {
        let mut part: Tokens = up_to_comma(&mut inner).into();
        let default = part.iter().position(|token| is_punct(Some(token), '='));
        part.truncate(default.unwrap_or(part.len()));
        let declared = text(part.iter().cloned().collect());
        if is_punct(part.front(), '\'') {
            let lifetime: Tokens = part.iter().take(2).cloned().collect();
            arguments += &format!("{},", text(lifetime.into()));
        } else if is_word(part.front(), "const") {
            part.pop_front();
            arguments += &format!("{},", word(&mut part)?);
        } else {
            let name = word(&mut part)?;
            arguments += &format!("{name},");
            types.push(name);
        }
        parameters += &format!("{declared},");
    }
    Ok((parameters, arguments, types))
}

/// Removes and returns the body, with true if its fields have names; moves a `where` clause to
/// `bounds`. `None` for a struct without fields.
fn body(tokens: &mut Tokens, bounds: &mut String) -> Option<(TokenStream, bool)> {
    let mut clause = Vec::new();
    while let Some(token) = tokens.pop_front() {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                bounds.push_str(&text(clause));
                return Some((group.stream(), true));
            }
            TokenTree::Group(group) if clause.is_empty() => return Some((group.stream(), false)),
            TokenTree::Ident(ident) if ident.to_string() == "where" => {}
            token if is_punct(Some(&token), ';') => {}
            token => clause.push(token),
        }
    }
    None
}

fn fields(stream: TokenStream, named: bool) -> Result<Fields, String> {
    let (mut tokens, mut list): (Tokens, Vec<Field>) = (flat(stream), Vec::new());
    while !tokens.is_empty() {
        let skip = skip_attributes(&mut tokens);
        skip_visibility(&mut tokens);
        let label = if named { word(&mut tokens)? } else { list.len().to_string() };
        if named {
            tokens.pop_front();
        }
        let of_type = text(up_to_comma(&mut tokens));
        list.push(Field { binding: format!("field_{label}"), label, of_type, skip });
    }
    Ok(Fields { list })
}

fn variants(stream: TokenStream) -> Result<Vec<(String, Fields)>, String> {
    let (mut tokens, mut list): (Tokens, Vec<_>) = (flat(stream), Vec::new());
    while !tokens.is_empty() {
        skip_attributes(&mut tokens);
        let name = word(&mut tokens)?;
        let rest = up_to_comma(&mut tokens);
        let fields = match rest.first() {
            Some(TokenTree::Group(group)) => {
                fields(group.stream(), group.delimiter() == Delimiter::Brace)?
            }
            _ => Fields { list: Vec::new() },
        };
        list.push((name, fields));
    }
    Ok(list)
}
