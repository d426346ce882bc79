//! Why a request is not a job, in the words of both interfaces.

use crate::filter::BadFilter;
use crate::native::{MODULE, MapFunction, ReduceFunction};
use crate::term::to_json;
use ombak_types::TooLarge;
use ombak_types::etf::{EtfError, Pretty, StringText, Term};
use serde_json::json;

/// Why a request is not a job.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JobError {
    /// The request is not JSON.
    #[error("{{invalid_json,{0}}}")]
    NotJson(String),
    /// The request is JSON and not an object.
    #[error("not_json")]
    NotAnObject,
    /// `inputs` or `query` is missing.
    #[error("missing_field")]
    MissingField,
    /// The request is not in the external term format.
    #[error("{{invalid_term,{}}}", StringText(&.0.to_string()))]
    NotATerm(EtfError),
    /// The job would take too much memory when it is read.
    #[error("{{too_large,{}}}", StringText(&too_large(*.bytes_max)))]
    TooLarge {
        /// The number of bytes that it may take.
        bytes_max: usize,
    },
    /// The inputs are not ones.
    #[error("{}", in_terms("inputs", .0))]
    Inputs(Why),
    /// The phases are not ones.
    #[error("{}", in_terms("query", .0))]
    Query(Why),
    /// The request has an Erlang function.
    #[error("{}", ERLANG_FUN)]
    ErlangFun,
    /// A phase has the source of an Erlang function.
    #[error("Phase {phase}: {}", ERLANG_SOURCE)]
    ErlangSource {
        /// The number of the phase, beginning with 0.
        phase: usize,
    },
    /// A phase names an Erlang function that does not exist.
    #[error("Phase {phase}: {}", unknown_function(.module, .function))]
    UnknownFunction {
        /// The number of the phase, beginning with 0.
        phase: usize,
        /// The module.
        module: String,
        /// The function.
        function: String,
    },
    /// A key filter does not exist or has wrong arguments.
    #[error(transparent)]
    Filter(#[from] BadFilter),
}

/// Why inputs or phases are not ones.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// A text, as Riak has it for jobs in JSON.
    Text(String),
    /// A term, as Riak has it for jobs in Erlang's terms: often a text and what it is about.
    Term(Term),
}

impl Why {
    /// A text and the term that it is about.
    pub(super) fn about(text: &str, term: Term) -> Self {
        Self::Term(Term::pair(Term::string(text.as_bytes()), term))
    }
}

impl From<TooLarge> for JobError {
    fn from(TooLarge { bytes_max }: TooLarge) -> Self {
        Self::TooLarge { bytes_max }
    }
}

fn too_large(bytes_max: usize) -> String {
    format!(
        "the job would take more than {bytes_max} bytes of memory when it is read: many small values in key data, key \
         filters and arguments take many times their text, so send fewer or longer ones, or several jobs"
    )
}

/// The maximum length of an error with a term, in bytes.
const TERM_BYTES_MAX: usize = 16 << 10;

/// The error as Riak writes it over Protocol Buffers: a pair in Erlang's terms.
fn in_terms(field: &str, why: &Why) -> String {
    match why {
        Why::Text(text) => format!("{{{field},{}}}", StringText(text)),
        Why::Term(why) => {
            let term = Term::pair(Term::atom(field), why.clone());
            Pretty { term: &term, bytes_max: TERM_BYTES_MAX }.to_string()
        }
    }
}

const ERLANG_FUN: &str = "{not_supported,\"Erlang functions (qfun) cannot run here: register the function in \
                          JavaScript and name it with {jsfun,Name}, or use the functions of riak_kv_mapreduce\"}";

const ERLANG_SOURCE: &str = "Erlang source (strfun) cannot run here: use a function in JavaScript (\"language\": \
                             \"javascript\"), or the functions of riak_kv_mapreduce";

/// The beginning is Riak's text, which clients know.
fn unknown_function(module: &str, function: &str) -> String {
    let maps = MapFunction::ALL.iter().map(|f| f.name());
    let names: Vec<&str> = maps.chain(ReduceFunction::ALL.iter().map(|f| f.name())).collect();
    let names = names.join(", ");
    if module == MODULE {
        return format!(
            "invalid function named in PhaseSpec function:\n {module}:{function} does not exist for this kind of \
             phase; there are {names}"
        );
    }
    format!(
        "invalid module named in PhaseSpec function:\n must be a valid module name (failed to load {module}: nofile)\n \
         {module}:{function} is an Erlang function, which cannot run here: register it in JavaScript, or use the \
         functions of {MODULE}: {names}"
    )
}

impl JobError {
    /// The status of the HTTP reply, its content type and its body.
    pub fn to_http(&self) -> (u16, &'static str, String) {
        const TEXT: &str = "text/plain";
        const JSON: &str = "application/json";
        match self {
            Self::NotJson(why) => {
                (400, TEXT, format!("The POST body was not valid JSON.\nThe error from the parser was:\n{why}\n\n"))
            }
            Self::NotAnObject => (400, TEXT, "The POST body was not a JSON object.\n".to_owned()),
            Self::MissingField => {
                (400, TEXT, "The post body was missing the \"inputs\" or \"query\" field.\n".to_owned())
            }
            Self::TooLarge { bytes_max } => (413, TEXT, format!("{}\n", too_large(*bytes_max))),
            Self::Inputs(why) => (400, TEXT, bad_field("inputs", why)),
            Self::Query(why) => (400, TEXT, bad_field("query", why)),
            Self::NotATerm(_) | Self::ErlangFun => (400, TEXT, format!("{self}\n")),
            // Riak's worker does not start with such a source, and the answer names its first
            // input. Here no input is read, and the stack says why.
            Self::ErlangSource { phase } => {
                let (error, stack) = ("[worker_startup_failed]", ERLANG_SOURCE);
                let members =
                    json!({ "phase": phase, "error": error, "input": "none", "type": "result", "stack": stack });
                (500, JSON, members.to_string())
            }
            Self::UnknownFunction { phase, module, function } => {
                (400, JSON, phase_error(*phase, &unknown_function(module, function)))
            }
            Self::Filter(BadFilter(name)) => {
                let name = to_json(name).unwrap_or_else(|_| serde_json::Value::from(name.to_string()).to_string());
                (500, JSON, format!("{{\"bad_filter\":{name}}}"))
            }
        }
    }
}

fn bad_field(field: &str, why: &Why) -> String {
    let why = match why {
        Why::Text(text) => text.clone(),
        Why::Term(term) => format!("{}\n", Pretty { term, bytes_max: TERM_BYTES_MAX }),
    };
    format!("An error occurred parsing the \"{field}\" field.\n{why}")
}

fn phase_error(phase: usize, error: &str) -> String {
    json!({ "phase": phase, "error": error }).to_string()
}
