//! `settings ...`: the replicated policy of the group.

use std::collections::HashMap;

use clap::Subcommand;
use client::Operator;
use client::proto::{GetSettingsRequest, SetSettingsRequest};
use serde::Serialize;

use crate::args::Global;
use crate::exit::{Code, Failure};
use crate::operator::{connect, show_receipt};
use crate::output::{Output, table};

/// Commands about settings.
#[derive(Debug, Subcommand)]
pub(crate) enum Settings {
    /// List all settings with defaults and what is allowed.
    List,
    /// Show one setting.
    Get {
        /// Its name.
        name: String,
    },
    /// Change settings, all or none.
    Set {
        /// Each as NAME=VALUE.
        #[arg(required = true, value_parser = assignment, value_name = "NAME=VALUE")]
        values: Vec<(String, String)>,
    },
}

#[derive(Debug, Clone, Serialize)]
struct Setting {
    name: String,
    value: String,
    default_value: String,
    allowed: String,
    about: String,
}

/// Runs one of them.
pub(crate) async fn run(
    command: Settings,
    global: &Global,
    output: &Output,
) -> Result<(), Failure> {
    let operator = connect(global)?;
    match command {
        Settings::List => output.show(&all(&operator, global).await?, |settings| list(settings)),
        Settings::Get { name } => {
            let settings = all(&operator, global).await?;
            let Some(setting) = settings.iter().find(|setting| setting.name == name) else {
                return Err(Failure::new(Code::NotFound, unknown(&name, &settings)));
            };
            output.show(setting, |setting| setting.value.clone())
        }
        Settings::Set { values } => {
            let values = each_once(values)?;
            let request = SetSettingsRequest { write: None, values };
            show_receipt(output, operator.set_settings(request).await?.receipt)
        }
    }
}

/// One value for each name: which of two was meant is not for us to say.
fn each_once(given: Vec<(String, String)>) -> Result<HashMap<String, String>, Failure> {
    let mut values = HashMap::new();
    for (name, value) in given {
        if let Some(earlier) = values.insert(name.clone(), value.clone()) {
            let both = format!("setting {name} is given twice, as {earlier} and as {value}");
            return Err(Failure::usage(both));
        }
    }
    Ok(values)
}

async fn all(operator: &Operator, global: &Global) -> Result<Vec<Setting>, Failure> {
    let answer = operator.get_settings(GetSettingsRequest { read: global.read() }).await?;
    let setting = |setting: client::proto::Setting| Setting {
        name: setting.name,
        value: setting.value,
        default_value: setting.default_value,
        allowed: setting.allowed,
        about: setting.about,
    };
    Ok(answer.settings.into_iter().map(setting).collect())
}

fn list(settings: &[Setting]) -> String {
    let mut table = table(["setting", "value", "default", "allowed", "about"]);
    for setting in settings {
        table.add_row([
            &setting.name,
            &setting.value,
            &setting.default_value,
            &setting.allowed,
            &setting.about,
        ]);
    }
    table.to_string()
}

fn unknown(name: &str, settings: &[Setting]) -> String {
    let likeness = |setting: &Setting| strsim::jaro_winkler(name, &setting.name);
    let best = settings.iter().max_by(|left, right| likeness(left).total_cmp(&likeness(right)));
    match best {
        Some(best) if likeness(best) > 0.8 => {
            format!("unknown setting `{name}`; did you mean `{}`?", best.name)
        }
        _ => format!("unknown setting `{name}`; `quorate settings list` shows all"),
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("must be NAME=VALUE, such as ttl_ms=3000".to_owned()),
    }
}
