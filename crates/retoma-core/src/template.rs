//! Message templates (minijinja), written by sellers: strict about values that nobody gave, bounded in work and size.
//!
//! Values have dotted names (`contact.first_name`). A value without a default that is missing is an error that names it,
//! never an empty place in a message; `{{ contact.first_name | default("tudo bem") }}` and `{% if pix.code %}` are how a
//! text does without one. Pure: the same text and values give the same message.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use minijinja::value::{Enumerator, Object, Value};
use minijinja::{Environment, ErrorKind, UndefinedBehavior};

/// Steps that a template may take; a long message takes some hundred.
const FUEL: u64 = 20_000;

/// Beyond this nothing is a chat message any more.
const RENDERED_BYTES_MAX: usize = 64 * 1024;

/// Why a template gave no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A value without a default is missing; names it.
    #[error("`{0}` is missing")]
    Missing(String),
    /// The template itself is wrong.
    #[error("line {line} of the text: {problem}")]
    Invalid {
        /// Line within the text, from 1.
        line: u32,
        /// What is wrong.
        problem: String,
    },
    /// The template does too much work, or gives too long a text.
    #[error("the text takes too much work or grows too long")]
    TooLarge,
}

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(32);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment
});

/// Renders a text with values by dotted name.
pub fn render(text: &str, vars: &BTreeMap<String, String>) -> Result<String, RenderError> {
    let template = ENVIRONMENT.template_from_str(text).map_err(invalid)?;
    let context = Context::new(vars, template.undeclared_variables(true));
    let missing = Arc::clone(&context.missing);
    let root = Value::from_object(Place { context: Arc::new(context), prefix: String::new() });
    let mut bytes = Bounded(Vec::new());
    match template.render_captured_to(root, &mut bytes) {
        Ok(_) => Ok(String::from_utf8(bytes.0).expect("a template writes text")),
        Err(error) => Err(match error.kind() {
            ErrorKind::OutOfFuel | ErrorKind::WriteFailure => RenderError::TooLarge,
            // The value asked for last is the one that could not be used.
            ErrorKind::UndefinedError => match missing.lock().unwrap_or_else(PoisonError::into_inner).take() {
                Some(name) => RenderError::Missing(name),
                None => invalid(error),
            },
            _ => invalid(error),
        }),
    }
}

/// Whether a text is a template at all.
pub fn compile(text: &str) -> Result<(), RenderError> {
    ENVIRONMENT.template_from_str(text).map(|_| ()).map_err(invalid)
}

/// The dotted names that a text asks for, sorted; none if it does not compile.
pub fn variables(text: &str) -> Vec<String> {
    let Ok(template) = ENVIRONMENT.template_from_str(text) else { return Vec::new() };
    let globals: BTreeSet<&str> = ENVIRONMENT.globals().map(|(name, _)| name).collect();
    let names = template.undeclared_variables(true).into_iter();
    let names: BTreeSet<String> = names.filter(|name| !globals.contains(name.as_str())).collect();
    names.into_iter().collect()
}

#[allow(clippy::needless_pass_by_value, reason = "used as a function in map_err")]
fn invalid(error: minijinja::Error) -> RenderError {
    let line = error.line().and_then(|line| u32::try_from(line).ok()).unwrap_or(1);
    let problem = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    RenderError::Invalid { line, problem }
}

/// All values of one rendering.
struct Context {
    vars: BTreeMap<String, String>,
    /// Names that stand before a dot in the template or among the values: they exist even where nothing is below them,
    /// so that `contact.first_name | default(..)` works for a contact of whom nothing is known.
    places: BTreeSet<String>,
    /// The name that was asked for last, and not found. What it is for: minijinja's error does not name it.
    missing: Arc<Mutex<Option<String>>>,
}

impl Context {
    fn new(vars: &BTreeMap<String, String>, used: impl IntoIterator<Item = String>) -> Self {
        let mut places = BTreeSet::new();
        for name in used.into_iter().chain(vars.keys().cloned()) {
            places.extend(name.match_indices('.').map(|(dot, _)| name[..dot].to_owned()));
        }
        Self { vars: vars.clone(), places, missing: Arc::default() }
    }
}

/// A place in the tree of names: `contact`, or the root.
struct Place {
    context: Arc<Context>,
    prefix: String,
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values are personal data; a place shows its name only.
        write!(f, "{{{}}}", self.prefix)
    }
}

impl Object for Place {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = key.as_str()?;
        let name = if self.prefix.is_empty() { key.to_owned() } else { format!("{}.{key}", self.prefix) };
        if self.context.places.contains(&name) {
            return Some(Value::from_object(Place { context: Arc::clone(&self.context), prefix: name }));
        }
        if let Some(value) = self.context.vars.get(&name) {
            return Some(Value::from(value.as_str()));
        }
        if ENVIRONMENT.globals().all(|(global, _)| global != name) {
            *self.context.missing.lock().unwrap_or_else(PoisonError::into_inner) = Some(name);
        }
        None
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        // Templates cannot list what is known of a contact.
        Enumerator::Empty
    }

    fn is_true(self: &Arc<Self>) -> bool {
        let below = format!("{}.", self.prefix);
        self.context.vars.keys().any(|name| name.starts_with(&below))
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `{{ contact }}` is a slip; nothing is better than a dump.
        let _ = f;
        Ok(())
    }
}

/// A buffer that refuses to grow past [`RENDERED_BYTES_MAX`].
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > RENDERED_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_missing_value_is_named_unless_the_text_does_without_it() {
        let known = vars(&[("contact.first_name", "Ana"), ("offer.name", "Curso"), ("order.id", "9"), ("order", "x")]);
        let missing = |name: &str| Err(RenderError::Missing(name.to_owned()));
        let table = [
            ("Oi, {{ contact.first_name }}!", Ok("Oi, Ana!")),
            ("Oi, {{ contact.last_name }}!", missing("contact.last_name")),
            ("Oi{% if contact.last_name %} {{ contact.last_name }}{% endif %}!", Ok("Oi!")),
            ("Oi, {{ contact.last_name | default(\"tudo bem\") }}?", Ok("Oi, tudo bem?")),
            // Nothing at all is known below `pix`.
            ("{{ pix.code | default(\"peça o código\") }}", Ok("peça o código")),
            ("{% if pix.code %}{{ pix.code }}{% else %}sem código{% endif %}", Ok("sem código")),
            ("{% if pix %}tem{% else %}não tem{% endif %}", missing_is_false()),
            ("{{ pix.code }}", missing("pix.code")),
            ("{{ aluno.turma.sala }}", missing("aluno.turma.sala")),
            ("{{ aluno.turma.sala | default(\"-\") }}", Ok("-")),
            ("{{ nome }}", missing("nome")),
            ("{{ offer.name | upper }}", Ok("CURSO")),
            ("{{ offer.nome | upper }}", missing("offer.nome")),
            ("{{ order.id }}", Ok("9")),
            ("{{ contact.a | default(\"\") }}{{ contact.b }}", missing("contact.b")),
            ("{% for x in contact %}{{ x }}{% endfor %}.", Ok(".")),
            ("100% <b>&</b> \"ok\"", Ok("100% <b>&</b> \"ok\"")),
        ];
        for (text, expected) in table {
            assert_eq!(render(text, &known), expected.map(str::to_owned), "{text}");
        }
    }

    fn missing_is_false() -> Result<&'static str, RenderError> {
        Ok("não tem")
    }

    #[test]
    fn a_broken_template_says_where() {
        let error = compile("linha um\nOi, {{ contact.first_name !").unwrap_err();
        assert!(matches!(error, RenderError::Invalid { line: 2, .. }), "{error:?}");
        assert!(matches!(compile("{{ x | nao_existe }}"), Ok(()) | Err(RenderError::Invalid { .. })));
        assert!(matches!(render("{{ 'x' | nao_existe }}", &vars(&[])), Err(RenderError::Invalid { .. })));
    }

    #[test]
    fn work_and_size_are_bounded() {
        let table = [
            "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}",
            "{{ 'x' * 70000 }}",
            "{% for a in range(70) %}{{ 'x' * 1000 }}{% endfor %}",
        ];
        for text in table {
            assert_eq!(render(text, &vars(&[])), Err(RenderError::TooLarge), "{text}");
        }
        assert!(render("{{ 'x' * 99999999999 }}", &vars(&[])).is_err());
    }

    #[test]
    fn variables_are_listed_once_and_without_functions() {
        let text = "{{ contact.first_name }} {% if pix.code %}{{ pix.code }}{% endif %} {{ contact.first_name }} \
                    {% for i in range(2) %}{{ i }}{% endfor %}";
        assert_eq!(variables(text), ["contact.first_name", "pix.code"]);
        assert_eq!(variables("{{"), Vec::<String>::new());
    }
}
