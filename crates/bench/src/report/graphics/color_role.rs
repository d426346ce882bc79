//! Colours, named by their meaning.

/// The colour of a shape. A page has two versions of each, for light and dark mode; a picture is
/// light.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum ColorRole {
    Paper,
    Text,
    /// Labels of axes.
    Muted,
    Grid,
    /// Successful operations.
    Ok,
    /// Failed operations.
    Error,
    /// One of several lines, by its index.
    Line(usize),
}

/// The number of lines that have different colours. Further lines are dashed.
const LINES: usize = 8;

struct Shade {
    name: &'static str,
    light: [u8; 3],
    dark: [u8; 3],
}

const fn shade(name: &'static str, light: u32, dark: u32) -> Shade {
    const fn rgb(hex: u32) -> [u8; 3] {
        let [_, red, green, blue] = hex.to_be_bytes();
        [red, green, blue]
    }
    Shade { name, light: rgb(light), dark: rgb(dark) }
}

/// The colours of background and text.
const PAPER: Shade = shade("paper", 0xffffff, 0x1b1e23);
const TEXT: Shade = shade("text", 0x22262b, 0xe4e6e9);
const MUTED: Shade = shade("muted", 0x646c75, 0x9aa2ab);
const GRID: Shade = shade("grid", 0xe3e6e9, 0x343a42);
/// The green and the red of basho_bench (docs/riak/basho-bench.md §7).
const OK: Shade = shade("ok", 0x188125, 0x4cc25c);
const ERROR: Shade = shade("error", 0xff665f, 0xff7f79);
/// Colours of lines. They differ in brightness, too, so that people with red-green colour blindness
/// can distinguish them.
const LINE: [Shade; LINES] = [
    shade("line0", 0x0b68a8, 0x5eb1ea),
    shade("line1", 0xe08214, 0xf5a945),
    shade("line2", 0x8a3d8f, 0xcf8fd6),
    shade("line3", 0x17876d, 0x4fc7aa),
    shade("line4", 0xc2314b, 0xf2788c),
    shade("line5", 0x6b7280, 0xb3bac4),
    shade("line6", 0x8c6d31, 0xcbb06f),
    shade("line7", 0x3f3fbf, 0x9a9af5),
];

impl ColorRole {
    /// The name in style sheets.
    pub(super) fn name(self) -> &'static str {
        self.shade().name
    }

    /// Red, green and blue in light mode.
    pub(in crate::report) fn light(self) -> [u8; 3] {
        self.shade().light
    }

    /// Whether a line is dashed, because an earlier line has the same colour.
    pub(super) fn dashed(self) -> bool {
        matches!(self, Self::Line(place) if place >= LINES)
    }

    fn shade(self) -> &'static Shade {
        match self {
            Self::Paper => &PAPER,
            Self::Text => &TEXT,
            Self::Muted => &MUTED,
            Self::Grid => &GRID,
            Self::Ok => &OK,
            Self::Error => &ERROR,
            Self::Line(place) => &LINE[place % LINES],
        }
    }

    fn all() -> impl Iterator<Item = Self> {
        [Self::Paper, Self::Text, Self::Muted, Self::Grid, Self::Ok, Self::Error]
            .into_iter()
            .chain((0..LINES).map(Self::Line))
    }

    /// The rules of the style sheet: the colours of both modes as variables, and for each colour a
    /// class for lines and one for areas.
    pub(in crate::report) fn style_sheet() -> String {
        let variables = |of: fn(&Shade) -> [u8; 3]| {
            let variable = |role: Self| {
                let [red, green, blue] = of(role.shade());
                format!("--{}:#{red:02x}{green:02x}{blue:02x};", role.name())
            };
            Self::all().map(variable).collect::<String>()
        };
        let classes = |role: Self| {
            let name = role.name();
            format!(".s-{name}{{stroke:var(--{name});fill:none}}.f-{name}{{fill:var(--{name})}}")
        };
        format!(
            ":root{{color-scheme:light dark;{}}}\n@media(prefers-color-scheme:dark){{:root{{{}}}}}\n{}\n",
            variables(|shade| shade.light),
            variables(|shade| shade.dark),
            Self::all().map(classes).collect::<String>()
        )
    }
}
