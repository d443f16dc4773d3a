"""How pages look: one style sheet, light or dark as the reader's system asks for."""

from __future__ import annotations

COLOURS = """
:root{--paper:#fbfbfa;--sheet:#fff;--ink:#1d2126;--soft:#5c6570;--rule:#e3e5e8;--grid:#edeff1;--good:#1a7f4b;
--bad:#c2372c;
--c0:#2f6fbb;--c1:#d9782d;--c2:#2f9e6e;--c3:#b4479a;--c4:#7a6bd1;--c5:#c9a227;--c6:#3ba7b8;--c7:#8d7361}
@media (prefers-color-scheme:dark){:root{--paper:#15181c;--sheet:#1c2026;--ink:#e6e8eb;--soft:#9aa4b0;--rule:#30363e;
--grid:#272c33;--good:#4cc38a;--bad:#ff7b6e;--c0:#6ea8ea;--c1:#f0a060;--c2:#5fcb9b;--c3:#dd83c8;--c4:#a79bf0;
--c5:#e2c158;
--c6:#6fd0df;--c7:#b99d8a}}
"""
_PAGE = """*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1140px;margin:0 auto;padding:32px 24px 64px}
h1{font-size:26px;line-height:1.2;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:19px;margin:0 0 4px}
h3{font-size:14px;margin:0 0 6px;font-weight:600}
header p,section>p{color:var(--soft);margin:0 0 12px;max-width:80ch}
p.missing{border-left:3px solid var(--rule);padding:2px 0 2px 12px;font-style:italic}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(128px,1fr));gap:12px;margin:20px 0 16px}
.fact{background:var(--sheet);border:1px solid var(--rule);border-radius:8px;padding:12px 14px}
.fact b{display:block;font-size:22px;line-height:1.25;font-variant-numeric:tabular-nums}
.fact span{display:block;color:var(--soft);font-size:13px}.fact small{display:block;color:var(--soft);font-size:12px}
.fact.good b{color:var(--good)}.fact.bad b{color:var(--bad)}
nav{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:13px;margin:0 0 8px}nav a{color:var(--c0);text-decoration:none}
section{margin:28px 0 0;padding:20px 0 0;border-top:1px solid var(--rule)}
figure{min-width:0;margin:12px 0 16px;background:var(--sheet);border:1px solid var(--rule);border-radius:8px;
padding:14px 16px 8px}
figcaption{color:var(--soft);font-size:13px;margin:2px 0 6px}
.plot{overflow-x:auto}svg{display:block;width:100%;height:auto}
.side{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:0 16px;align-items:start}
.table{overflow-x:auto;margin:12px 0 16px}
table{border-collapse:collapse;font-size:13.5px;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);font-size:13px;padding:0 0 6px}
th{font-weight:600;color:var(--soft);border-bottom:1px solid var(--rule);white-space:nowrap}
th,td{padding:4px 14px 4px 0;vertical-align:top}td{border-bottom:1px solid var(--grid)}
.number{text-align:right;white-space:nowrap}.words{text-align:left;white-space:nowrap}
.wide{text-align:left;min-width:220px;overflow-wrap:anywhere}
pre{background:var(--sheet);border:1px solid var(--rule);border-radius:8px;padding:10px 14px;
white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px}
footer{margin-top:32px;color:var(--soft);font-size:13px}
"""
PLOTS = """svg text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;fill:var(--ink)}
svg .tick,svg .marked{fill:var(--soft);font-size:11px}
svg .marked{paint-order:stroke;stroke:var(--sheet);stroke-width:4px;stroke-linejoin:round}
svg .label{fill:var(--soft);font-size:12px}
svg .row{font-weight:600}
svg .inside{fill:#15181c;font-size:11px}
.grid{stroke:var(--grid)}.axis,.tickmark{stroke:var(--soft);stroke-opacity:.6}
.mark{stroke:var(--soft);stroke-dasharray:2 3;stroke-opacity:.8}
.line{fill:none;stroke-width:2;stroke-linejoin:round}.dashed{stroke-dasharray:6 4}
.dot{stroke:var(--sheet);stroke-width:1}
.band{fill-opacity:.18}.bar{fill-opacity:.85}.unsettled{fill:var(--soft);fill-opacity:.45}.stretch{fill-opacity:.5}
@media (prefers-color-scheme:dark){.stretch{fill-opacity:.9}}
.s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}.s4{stroke:var(--c4)}
.s5{stroke:var(--c5)}.s6{stroke:var(--c6)}.s7{stroke:var(--c7)}
.f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}
.f5{fill:var(--c5)}.f6{fill:var(--c6)}.f7{fill:var(--c7)}
"""
STYLE = (
    COLOURS
    + _PAGE
    + PLOTS
    + """@media print{body{background:#fff}nav{display:none}figure,section{break-inside:avoid}}
"""
)
