"""The results: tables and claims as Markdown, raw numbers as JSON."""


class Table:
    def __init__(self, title, head, notes=()):
        self.title = title
        self.head = head
        self.rows = []
        self.notes = list(notes)

    def add(self, *cells):
        assert len(cells) == len(self.head), cells
        self.rows.append([str(cell) for cell in cells])

    def markdown(self):
        lines = [f"### {self.title}", ""]
        widths = [max(len(row[i]) for row in [self.head, *self.rows])
                  for i in range(len(self.head))]

        def line(cells):
            return "| " + " | ".join(c.ljust(w) for c, w in zip(cells, widths)) + " |"

        lines += [line(self.head), "|" + "|".join("-" * (w + 2) for w in widths) + "|"]
        lines += [line(row) for row in self.rows]
        for note in self.notes:
            lines += ["", note]
        return "\n".join(lines) + "\n"


class Claim:
    """Something that must hold: a measured number against its bound."""

    def __init__(self, text, measured, bound, holds, is_aim=False):
        self.text = text
        self.measured = measured
        self.bound = bound
        self.holds = holds
        self.is_aim = is_aim  # reported; not holding is no failure

    def verdict(self):
        return "holds" if self.holds else "aim missed" if self.is_aim else "**does not hold**"


def claims_table(claims):
    table = Table("What must hold", ["claim", "bound", "measured", ""])
    for claim in claims:
        table.add(claim.text, claim.bound, claim.measured, claim.verdict())
    return table


def at_most(text, spread, bound, digits=2, is_aim=False, unit=""):
    return Claim(text, spread.show(digits) + unit, f"at most {bound}{unit}",
                 spread.median <= bound, is_aim)


def at_least(text, spread, bound, digits=2, is_aim=False, unit=""):
    return Claim(text, spread.show(digits) + unit, f"at least {bound}{unit}",
                 spread.median >= bound, is_aim)
