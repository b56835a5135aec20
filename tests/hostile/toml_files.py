"""TOML of gates, mappings and taxonomies: nesting, huge numbers, wrong types, odd names."""

from tests.hostile.case import REFUSED, TARGETS, add, nested

TOML = ("gate", "import --mapping", "taxonomy")

for command in TOML:
    own = TARGETS[command].good.decode()
    wrong: dict[str, str | bytes] = {
        "dup": own.splitlines()[0] + "\n" + own,
        "bin": b"\x00\xff\xfe\x01" * 50,
        "deep": f"a = {nested(2_000)}\n" + own,
        "deep2": f"a = {nested(100_000)}\n" + own,
        "deepinline": "a = " + "{a = " * 5_000 + "1" + "}" * 5_000 + "\n" + own,
        "dotted": ".".join(["a"] * 20_000) + " = 1\n" + own,
        "date": "version = 2026-01-01\nceiling_usd = 2026-01-01\n" + own,
        "arr": "[[workflows]]\nname = 1\n[[gates]]\nx = 1\n[[version]]\n",
        "arr2": "workflows = [1, 2]\ngates = [1]\nclasses = 3\nnodes = 'x'\nversion = '1'\n",
        "wf": "[workflows]\nflights = 3\n[gates]\ncost = 3\n",
        "manytables": "".join(f"[workflows.w{k}]\nunit = 'x'\n[gates.g{k}]\n" for k in range(999)),
    }  # fmt: skip
    for kind, content in wrong.items():
        add(command, kind, content)
    for kind, value in {
        "nan": "nan",
        "inf": "inf",
        "hugeint": "1" * 5_000,
        "hex": "0x" + "f" * 100_000,
    }.items():
        number = {
            "gate": f'[gates."pass_at_1"]\nthreshold = {value}\n',
            "import --mapping": f"[workflows.flights]\nceiling_usd = {value}\n",
            "taxonomy": own.replace("credit = 0.4", f"credit = {value}"),
        }[command]
        add(command, kind, number, codes=REFUSED)

add("calibrate", "nan", "trace_id,outcome,weight\n" + "t0,a,nan\nt1,b,1\n")

add("gate", "string", '[gates]\n"pass_at_1" = "x"\n', codes=REFUSED)
GATE = '[gates."{}"]\n{}\n'
for kind, name, line in (
    ("thr-nan", "asr", "threshold = nan"),
    ("thr-huge", "asr", "threshold = 1e400"),
    ("lvl", "asr", 'level = "perhaps"'),
    ("unk", "no_such_gate", "threshold = 1"),
    ("k0", "pass_at_0", "threshold = 0.5"),
    ("khuge", "pass_at_" + "9" * 5_000, "threshold = 0.5"),
    ("khat", "pass_hat_9999999", "threshold = 0.5"),
    ("lat", "latency_p95", "threshold = -1"),
):
    add("gate", kind, GATE.format(name, line))

CEILING = "[workflows.flights]\nceiling_usd = {}\n"
for kind, value in {
    "ceil-nan": "nan",
    "ceil-inf": "inf",
    "ceil-neg": "-1.0",
    "ceil-huge": "1e300",
    "ceil-400": "1" + "0" * 400,
}.items():
    add("import --mapping", kind, CEILING.format(value), codes=REFUSED)
for kind, zone in {
    "tz": "Mars/Base",
    "tz2": "../../etc/passwd",
    "tz3": "/etc/localtime",
    "tz4": "Europe",
    "tz5": "x" * 5_000,
}.items():
    add("import --mapping", kind, f'timezone = "{zone}"\n', codes=REFUSED)
for kind, name in {
    "name-blank": " ",
    "name-html": "<script>alert(1)</script>",
    "name-huge": "x" * 100_000,
}.items():
    add("import --mapping", kind, f'[workflows.flights]\nname = "{name}"\n')
add("import --mapping", "unit-ctl", '[workflows.flights]\nunit = "a\\u001b[31m\\u0007"\n')

OWN = TARGETS["taxonomy"].good.decode()
for kind, old, new in (
    ("string", 'version = "1.0"', "version = 'x'\nworkflows = 'all'"),
    ("version-html", '"1.0"', '"<script>alert(1)</script>"'),
    ("version-num", '"1.0"', "1.0"),
    ("credit-nan", "credit = 0.4", "credit = nan"),
    ("credit-neg", "credit = 0.4", "credit = -0.4"),
    ("credit-str", "credit = 0.4", 'credit = "0.4"'),
    ("credit-huge", "credit = 0.4", "credit = 1e400"),
):
    add("taxonomy", kind, OWN.replace(old, new, 1))
