"""Comparisons in pairs. On a machine whose speed drifts, two numbers taken minutes apart say
nothing; two taken one after the other, many times over, do. So contestants run in rounds,
A B C A B C ..., a ratio is taken within each round, and the median of the ratios is shown with the
smallest and the largest."""
import statistics


class Spread:
    """Median, least and greatest of some numbers."""

    def __init__(self, values):
        self.values = list(values)
        self.median = statistics.median(self.values)
        self.least = min(self.values)
        self.greatest = max(self.values)

    def show(self, digits):
        """"0.65 (0.62..0.71)"."""
        text = f"{self.median:.{digits}f}"
        if len(self.values) > 1:
            text += f" ({self.least:.{digits}f}..{self.greatest:.{digits}f})"
        return text


class Rounds:
    """Measurements by contestant; those that cannot be had are left out with the reason."""

    def __init__(self, names):
        self.names = list(names)
        self.measured = {name: [] for name in self.names}
        self.absent = {}

    def run(self, n, measure, say):
        """measure(name) gives a dictionary of numbers, or raises Unavailable."""
        for i in range(n):
            for name in self.names:
                if name in self.absent:
                    continue
                try:
                    self.measured[name].append(measure(name))
                except Unavailable as reason:
                    self.absent[name] = str(reason)
                    self.measured[name] = []
                    say(f"{name} is left out: {reason}")
            say(f"round {i + 1} of {n}")

    def has(self, *names):
        return all(self.measured.get(name) for name in names)

    def value(self, name, key):
        return Spread(one[key] for one in self.measured[name])

    def ratio(self, name, base, key):
        """Of one contestant's number over another's, within rounds."""
        return Spread(a[key] / b[key]
                      for a, b in zip(self.measured[name], self.measured[base]) if b[key])

    def ratio_to_best(self, name, bases, key):
        """Over the smallest of several, taken by their medians."""
        best = min((base for base in bases if self.has(base)),
                   key=lambda base: self.value(base, key).median)
        return self.ratio(name, best, key)


class Unavailable(Exception):
    """This contestant cannot run here; the text says why."""
