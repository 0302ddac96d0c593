# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""einsum: sums of products named by letters, through matrix products."""

import math

from holdfast import _C
from holdfast._registry import function

_ops = _C.ops

# Labels are letters; the dimensions that "..." stands for are (0,), (1,), ...
# counted from the last one.


def _operand_labels(term, rank, position):
    """The labels of one operand's dimensions."""
    if "..." not in term:
        if "." in term:
            raise RuntimeError(
                "einsum(): found '.' for operand "
                f"{position} that is not part of any ellipsis"
            )
        labels = list(term)
    else:
        before, _, after = term.partition("...")
        covered = rank - len(before) - len(after)
        middle = [(i,) for i in range(covered - 1, -1, -1)]
        labels = list(before) + middle + list(after)
        if covered < 0:
            labels = list(before) + list(after)
    if len(labels) != rank:
        raise RuntimeError(
            "einsum(): the number of subscripts in the equation "
            f"({len(term.replace('...', ''))}) "
            f"{'is more than' if len(labels) > rank else 'does not match'} the number "
            f"of dimensions ({rank}) for operand {position}"
        )
    for label in labels:
        if isinstance(label, str) and not (label.isascii() and label.isalpha()):
            raise RuntimeError(
                "einsum(): invalid subscript given at index "
                f"{position} in the equation string: {label!r}, subscripts must be "
                "in [a-zA-Z]"
            )
    return labels


def _parse(equation, operands):
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise RuntimeError(
            "einsum(): more operands were provided than specified in the equation"
            if len(terms) < len(operands)
            else "einsum(): fewer operands were provided than specified in the equation"
        )
    labels = [
        _operand_labels(term, x.dim(), i)
        for i, (term, x) in enumerate(zip(terms, operands))
    ]
    every = [label for own in labels for label in own]
    hidden = sorted({x for x in every if isinstance(x, tuple)}, reverse=True)
    if not arrow:
        once = sorted({x for x in every if isinstance(x, str) and every.count(x) == 1})
        return labels, hidden + once
    if "..." in right:
        before, _, after = right.partition("...")
        output = list(before) + hidden + list(after)
    else:
        output = list(right)
    for label in output:
        if isinstance(label, str) and output.count(label) > 1:
            raise RuntimeError(
                f"einsum(): output subscript {label} appears more than once in the "
                "output"
            )
        if label not in every:
            raise RuntimeError(
                f"einsum(): output subscript {label} does not appear in the equation "
                "for any input operand"
            )
    return labels, output


def _sizes(labels, operands):
    sizes = {}
    for i, (own, x) in enumerate(zip(labels, operands)):
        for dim, (label, n) in enumerate(zip(own, x.shape)):
            if sizes.setdefault(label, n) == 1:
                sizes[label] = n
            elif n not in (1, sizes[label]):
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {n} for operand {i} which "
                    f"does not broadcast with previously seen size {sizes[label]}"
                )
    return sizes


def _diagonals(x, labels):
    """Each label once: repeated ones name a diagonal."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            n = x.size(i)
            if x.size(j) != n:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand with sizes "
                    f"{n} and {x.size(j)}"
                )
            others = [d for d in range(len(labels)) if d not in (i, j)]
            x = _ops.permute(x, (*others, i, j))
            shape = tuple(x.shape[:-2])
            x = x.reshape(shape + (n * n,))
            x = _ops.slice(x, -1, 0, n * n, n + 1)
            labels = [labels[d] for d in others] + [label]
    return x, labels


def _drop(x, labels, keep):
    """Sums over the labels that nobody needs any more."""
    gone = [d for d, label in enumerate(labels) if label not in keep]
    if gone:
        x = _ops.sum(x, tuple(gone), dtype=x.dtype)
        labels = [label for label in labels if label in keep]
    return x, labels


def _pair(a, la, b, lb, keep):
    """The product of two operands, summed over labels that are not in keep."""
    a, la = _drop(a, la, set(keep) | set(lb))
    b, lb = _drop(b, lb, set(keep) | set(la))
    # A size of 1 against a larger one broadcasts, which matmul does not do for
    # the dimensions that it sums over.
    for label in [x for x in la if x in lb and x not in keep]:
        i, j = la.index(label), lb.index(label)
        if a.size(i) != b.size(j):
            if a.size(i) == 1:
                a, la = _drop(a, la, set(la) - {label})
                b, lb = _drop(b, lb, set(lb) - {label})
            else:
                b, lb = _drop(b, lb, set(lb) - {label})
                a, la = _drop(a, la, set(la) - {label})
    both = [x for x in la if x in lb and x in keep]
    summed = [x for x in la if x in lb and x not in keep]
    only_a = [x for x in la if x not in lb]
    only_b = [x for x in lb if x not in la]
    labels = both + only_a + only_b
    if not summed:
        a = _aligned(a, la, labels)
        return a * _aligned(b, lb, labels), labels
    a = _ops.permute(a, tuple(la.index(x) for x in both + only_a + summed))
    b = _ops.permute(b, tuple(lb.index(x) for x in both + summed + only_b))
    nb, ns = len(both), len(summed)
    batch_a, batch_b = tuple(a.shape[:nb]), tuple(b.shape[:nb])
    rows = tuple(a.shape[nb : nb + len(only_a)])
    columns = tuple(b.shape[nb + ns :])
    k = math.prod(a.shape[nb + len(only_a) :])
    product = _ops.matmul(
        a.reshape(batch_a + (math.prod(rows), k)),
        b.reshape(batch_b + (k, math.prod(columns))),
    )
    return product.reshape(tuple(product.shape[:nb]) + rows + columns), labels


def _aligned(x, own, labels):
    """x with the dimensions `labels`, size 1 for those it has not."""
    order = [label for label in labels if label in own]
    x = _ops.permute(x, tuple(own.index(label) for label in order))
    return x.reshape(tuple(x.size(order.index(y)) if y in own else 1 for y in labels))


def _cheapest(terms, output, sizes):
    """The pair to multiply next: the least growth, then the least work."""
    best = None
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            rest = set(output)
            for k, (_, labels) in enumerate(terms):
                if k not in (i, j):
                    rest |= set(labels)
            one, two = set(terms[i][1]), set(terms[j][1])
            result = math.prod(sizes[x] for x in (one | two) & rest)
            growth = result - sum(math.prod(sizes[x] for x in s) for s in (one, two))
            work = math.prod(sizes[x] for x in one | two)
            if best is None or (growth, work) < best[0]:
                best = (growth, work), i, j, rest
    return best[1:]


def _sublists(operands):
    """einsum(a, [0, 1], b, [1, 2], [0, 2]) as an equation and its operands."""

    def term(numbers):
        text = ""
        for n in numbers:
            if n is not Ellipsis and not 0 <= n < 52:
                raise RuntimeError(f"einsum(): not within the valid range [0, 52): {n}")
            text += (
                "..."
                if n is Ellipsis
                else chr(ord("A") + n)
                if n < 26
                else chr(ord("a") + n - 26)
            )
        return text

    pairs = len(operands) // 2
    equation = ",".join(term(operands[2 * i + 1]) for i in range(pairs))
    if len(operands) % 2:
        equation += "->" + term(operands[-1])
    return equation, [operands[2 * i] for i in range(pairs)]


@function
def einsum(equation, *operands):
    """Sums of products of the operands' elements, as the letters say.

    "ij,jk->ik" is a matrix product; a letter twice in one operand is a
    diagonal; "..." is any further dimensions, which broadcast; without "->" the
    letters that appear once are the result's, in alphabetical order.
    """
    if isinstance(equation, _C.Tensor):
        equation, operands = _sublists([equation, *operands])
    elif len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    labels, output = _parse(equation, operands)
    sizes = _sizes(labels, operands)
    terms = [_diagonals(x, own) for x, own in zip(operands, labels)]
    while len(terms) > 1:
        i, j, rest = _cheapest(terms, output, sizes)
        product = _pair(*terms[i], *terms[j], rest)
        terms = [t for k, t in enumerate(terms) if k not in (i, j)] + [product]
    x, own = _drop(*terms[0], output)
    return _ops.permute(x, tuple(own.index(label) for label in output))
