// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// An example for each function of the op table that programs call, with what it
// prints: python_client/tests/test_op_help.py runs them all.
#ifndef HOLDFAST_PYTHON_CLIENT_SRC_OP_EXAMPLES_H_
#define HOLDFAST_PYTHON_CLIENT_SRC_OP_EXAMPLES_H_

#include "absl/strings/string_view.h"

namespace holdfast::python {

// A function that has one here has a page of the same name in PyTorch's
// documentation.
struct Example {
  absl::string_view op, text;
};
inline constexpr Example kExamples[] = {
    {"abs", ">>> torch.abs(torch.tensor([-1, 2]))\ntensor([1, 2])"},
    {"add",
     ">>> torch.add(torch.tensor([1, 2]), torch.tensor([[10], [20]]))\n"
     "tensor([[11, 12],\n        [21, 22]])\n"
     ">>> torch.add(torch.tensor([1, 2]), 10, alpha=3)\ntensor([31, 32])"},
    {"all",
     ">>> torch.all(torch.tensor([[1, 0], [1, 1]]), dim=1)\n"
     "tensor([False,  True])"},
    {"amax",
     ">>> torch.amax(torch.tensor([[1, 5], [4, 3]]), dim=1)\n"
     "tensor([5, 4])"},
    {"amin",
     ">>> torch.amin(torch.tensor([[1, 5], [4, 3]]), dim=1)\n"
     "tensor([1, 3])"},
    {"any",
     ">>> torch.any(torch.tensor([[0, 0], [0, 1]]), dim=1)\n"
     "tensor([False,  True])"},
    {"argmax",
     ">>> torch.argmax(torch.tensor([[1, 5], [4, 3]]), dim=1)\n"
     "tensor([1, 0])"},
    {"argmin",
     ">>> torch.argmin(torch.tensor([[1, 5], [4, 3]]), dim=1)\n"
     "tensor([0, 1])"},
    {"cat",
     ">>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])\n"
     "tensor([1, 2, 3])"},
    {"clamp",
     ">>> torch.clamp(torch.tensor([-1, 2, 5]), min=0, max=3)\n"
     "tensor([0, 2, 3])"},
    {"cumsum",
     ">>> torch.cumsum(torch.tensor([1, 2, 3]), dim=0)\n"
     "tensor([1, 3, 6])"},
    {"div",
     ">>> torch.div(torch.tensor([7, -7]), 2)\ntensor([ 3.5000, -3.5000])\n"
     ">>> torch.div(torch.tensor([7, -7]), 2, rounding_mode='floor')\n"
     "tensor([ 3, -4])"},
    {"eq", ">>> torch.eq(torch.tensor([1, 2]), 2)\ntensor([False,  True])"},
    {"exp",
     ">>> torch.exp(torch.tensor([0., 1.]))\n"
     "tensor([1.0000, 2.7183])"},
    {"eye", ">>> torch.eye(2)\ntensor([[1., 0.],\n        [0., 1.]])"},
    {"flip",
     ">>> torch.flip(torch.tensor([1, 2, 3]), [0])\n"
     "tensor([3, 2, 1])"},
    {"full", ">>> torch.full((2, 2), 7)\ntensor([[7, 7],\n        [7, 7]])"},
    {"gather",
     ">>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1,\n"
     "...              torch.tensor([[0, 0], [1, 0]]))\n"
     "tensor([[1, 1],\n        [4, 3]])"},
    {"gt", ">>> torch.gt(torch.tensor([1, 2]), 1)\ntensor([False,  True])"},
    {"index_select",
     ">>> torch.index_select(torch.tensor([5, 6, 7]), 0, "
     "torch.tensor([2, 0]))\ntensor([7, 5])"},
    {"log",
     ">>> torch.log(torch.tensor([1., 10.]))\n"
     "tensor([0.0000, 2.3026])"},
    {"lt", ">>> torch.lt(torch.tensor([1, 2]), 2)\ntensor([ True, False])"},
    {"matmul",
     ">>> torch.matmul(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 1]))\n"
     "tensor([3, 7])"},
    {"maximum",
     ">>> torch.maximum(torch.tensor([1, 5]), torch.tensor([3, 4]))"
     "\ntensor([3, 5])"},
    {"mean",
     ">>> torch.mean(torch.tensor([[1., 2.], [3., 4.]]), dim=0)\n"
     "tensor([2., 3.])"},
    {"minimum",
     ">>> torch.minimum(torch.tensor([1, 5]), torch.tensor([3, 4]))"
     "\ntensor([1, 4])"},
    {"mul",
     ">>> torch.mul(torch.tensor([1, 2]), torch.tensor([[10], [20]]))\n"
     "tensor([[10, 20],\n        [20, 40]])"},
    {"ne", ">>> torch.ne(torch.tensor([1, 2]), 2)\ntensor([ True, False])"},
    {"neg", ">>> torch.neg(torch.tensor([1, -2]))\ntensor([-1,  2])"},
    {"nonzero",
     ">>> torch.nonzero(torch.tensor([0, 3, 4]))\n"
     "tensor([[1],\n        [2]])"},
    {"permute",
     ">>> tuple(torch.permute(torch.ones(2, 3, 4), (2, 0, 1)).shape)\n"
     "(4, 2, 3)"},
    {"pow", ">>> torch.pow(torch.tensor([1, 2, 3]), 2)\ntensor([1, 4, 9])"},
    {"prod", ">>> torch.prod(torch.tensor([2, 3]))\ntensor(6)"},
    {"reciprocal",
     ">>> torch.reciprocal(torch.tensor([2., 4.]))\n"
     "tensor([0.5000, 0.2500])"},
    {"round",
     ">>> torch.round(torch.tensor([1.25, 2.5]))\ntensor([1., 2.])\n"
     ">>> torch.round(torch.tensor([1.23]), decimals=1)\n"
     "tensor([1.2000])"},
    {"scatter",
     ">>> torch.scatter(torch.zeros(3), 0, torch.tensor([2, 0]), "
     "torch.tensor([5., 6.]))\ntensor([6., 0., 5.])"},
    {"sigmoid",
     ">>> torch.sigmoid(torch.tensor([0., 2.]))\n"
     "tensor([0.5000, 0.8808])"},
    {"softmax",
     ">>> torch.softmax(torch.tensor([0., 0.]), dim=0)\n"
     "tensor([0.5000, 0.5000])"},
    {"sqrt", ">>> torch.sqrt(torch.tensor([4., 9.]))\ntensor([2., 3.])"},
    {"squeeze",
     ">>> tuple(torch.squeeze(torch.ones(2, 1, 3)).shape)\n"
     "(2, 3)"},
    {"sub", ">>> torch.sub(torch.tensor([5, 6]), 1, alpha=2)\ntensor([3, 4])"},
    {"sum",
     ">>> torch.sum(torch.tensor([[1, 2], [3, 4]]), dim=1, "
     "keepdim=True)\ntensor([[3],\n        [7]])"},
    {"tanh",
     ">>> torch.tanh(torch.tensor([0., 1.]))\n"
     "tensor([0.0000, 0.7616])"},
    {"transpose",
     ">>> torch.transpose(torch.tensor([[1, 2], [3, 4]]), 0, 1)\n"
     "tensor([[1, 3],\n        [2, 4]])"},
    {"tril",
     ">>> torch.tril(torch.ones(2, 2))\n"
     "tensor([[1., 0.],\n        [1., 1.]])"},
    {"triu",
     ">>> torch.triu(torch.ones(2, 2))\n"
     "tensor([[1., 1.],\n        [0., 1.]])"},
    {"unsqueeze",
     ">>> tuple(torch.unsqueeze(torch.ones(2), 0).shape)\n"
     "(1, 2)"},
    {"where",
     ">>> torch.where(torch.tensor([True, False]), torch.tensor([1, 2]), 0)\n"
     "tensor([1, 0])"},
    {"acos", ">>> torch.acos(torch.tensor([1.0]))\ntensor([0.])"},
    {"acosh", ">>> torch.acosh(torch.tensor([1.0]))\ntensor([0.])"},
    {"as_strided",
     ">>> torch.as_strided(torch.arange(4), (2,), (2,))\ntensor([0, 2])"},
    {"as_strided_scatter",
     ">>> torch.as_strided_scatter(torch.zeros(4), torch.ones(2), (2,), "
     "(2,))\ntensor([1., 0., 1., 0.])"},
    {"asin", ">>> torch.asin(torch.tensor([0.0]))\ntensor([0.])"},
    {"asinh", ">>> torch.asinh(torch.tensor([0.0]))\ntensor([0.])"},
    {"atan", ">>> torch.atan(torch.tensor([0.0]))\ntensor([0.])"},
    {"atan2",
     ">>> torch.atan2(torch.tensor([0.0]), torch.tensor([1.0]))\ntensor([0.])"},
    {"atanh", ">>> torch.atanh(torch.tensor([0.0]))\ntensor([0.])"},
    {"bernoulli",
     ">>> torch.bernoulli(torch.tensor([0.0, 1.0]))\ntensor([0., 1.])"},
    {"bitwise_and",
     ">>> torch.bitwise_and(torch.tensor([6, 5]), 3)\ntensor([2, 1])"},
    {"bitwise_left_shift",
     ">>> torch.bitwise_left_shift(torch.tensor([1, 2]), 2)\ntensor([4, 8])"},
    {"bitwise_or",
     ">>> torch.bitwise_or(torch.tensor([6, 5]), 3)\ntensor([7, 7])"},
    {"bitwise_right_shift",
     ">>> torch.bitwise_right_shift(torch.tensor([8, 4]), 2)\ntensor([2, 1])"},
    {"bitwise_xor",
     ">>> torch.bitwise_xor(torch.tensor([6, 5]), 3)\ntensor([5, 6])"},
    {"ceil", ">>> torch.ceil(torch.tensor([1.5, -1.5]))\ntensor([ 2., -1.])"},
    {"clone", ">>> torch.clone(torch.tensor([1, 2]))\ntensor([1, 2])"},
    {"copysign",
     ">>> torch.copysign(torch.tensor([3.0]), -1.0)\ntensor([-3.])"},
    {"cos", ">>> torch.cos(torch.tensor([0.0]))\ntensor([1.])"},
    {"cosh", ">>> torch.cosh(torch.tensor([0.0]))\ntensor([1.])"},
    {"count_nonzero",
     ">>> torch.count_nonzero(torch.tensor([0, 5, 6]))\ntensor(2)"},
    {"cumprod",
     ">>> torch.cumprod(torch.tensor([1, 2, 3]), 0)\ntensor([1, 2, 6])"},
    {"digamma", ">>> torch.digamma(torch.tensor([1.0]))\ntensor([-0.5772])"},
    {"empty", ">>> torch.empty(2, 3).shape\ntorch.Size([2, 3])"},
    {"erf", ">>> torch.erf(torch.tensor([0.0]))\ntensor([0.])"},
    {"erfc", ">>> torch.erfc(torch.tensor([0.0]))\ntensor([1.])"},
    {"erfinv", ">>> torch.erfinv(torch.tensor([0.0]))\ntensor([0.])"},
    {"exp2", ">>> torch.exp2(torch.tensor([3.0]))\ntensor([8.])"},
    {"expm1", ">>> torch.expm1(torch.tensor([0.0]))\ntensor([0.])"},
    {"floor", ">>> torch.floor(torch.tensor([1.5, -1.5]))\ntensor([ 1., -2.])"},
    {"floor_divide",
     ">>> torch.floor_divide(torch.tensor([7, -7]), 2)\ntensor([ 3, -4])"},
    {"fmax",
     ">>> torch.fmax(torch.tensor([1.0]), "
     "torch.tensor([float(\"nan\")]))\ntensor([1.])"},
    {"fmin",
     ">>> torch.fmin(torch.tensor([1.0]), torch.tensor([2.0]))\ntensor([1.])"},
    {"fmod", ">>> torch.fmod(torch.tensor([7, -7]), 3)\ntensor([ 1, -1])"},
    {"gcd",
     ">>> torch.gcd(torch.tensor([12]), torch.tensor([18]))\ntensor([6])"},
    {"hypot",
     ">>> torch.hypot(torch.tensor([3.0]), torch.tensor([4.0]))\ntensor([5.])"},
    {"index_add",
     ">>> torch.index_add(torch.zeros(2), 0, torch.tensor([1, 1]), "
     "torch.ones(2))\ntensor([0., 2.])"},
    {"isfinite",
     ">>> torch.isfinite(torch.tensor([1.0, float(\"inf\")]))\ntensor([ True, "
     "False])"},
    {"isnan",
     ">>> torch.isnan(torch.tensor([1.0, float(\"nan\")]))\ntensor([False,  "
     "True])"},
    {"lcm",
     ">>> torch.lcm(torch.tensor([4]), torch.tensor([6]))\ntensor([12])"},
    {"lgamma", ">>> torch.lgamma(torch.tensor([1.0]))\ntensor([0.])"},
    {"log10", ">>> torch.log10(torch.tensor([100.0]))\ntensor([2.])"},
    {"log1p", ">>> torch.log1p(torch.tensor([0.0]))\ntensor([0.])"},
    {"log2", ">>> torch.log2(torch.tensor([8.0]))\ntensor([3.])"},
    {"logcumsumexp",
     ">>> torch.logcumsumexp(torch.tensor([0.0]), 0)\ntensor([0.])"},
    {"logical_and",
     ">>> torch.logical_and(torch.tensor([0, 2]), torch.tensor([1, "
     "1]))\ntensor([False,  True])"},
    {"logical_not",
     ">>> torch.logical_not(torch.tensor([0, 2]))\ntensor([ True, False])"},
    {"logical_or",
     ">>> torch.logical_or(torch.tensor([0, 2]), torch.tensor([0, "
     "0]))\ntensor([False,  True])"},
    {"logical_xor",
     ">>> torch.logical_xor(torch.tensor([0, 2]), torch.tensor([1, "
     "1]))\ntensor([ True, False])"},
    {"poisson", ">>> torch.poisson(torch.tensor([0.0]))\ntensor([0.])"},
    {"rand", ">>> torch.rand(2).shape\ntorch.Size([2])"},
    {"randn", ">>> torch.randn(2).shape\ntorch.Size([2])"},
    {"randperm", ">>> torch.randperm(3).sort().values\ntensor([0, 1, 2])"},
    {"relu", ">>> torch.relu(torch.tensor([-1.0, 2.0]))\ntensor([0., 2.])"},
    {"remainder",
     ">>> torch.remainder(torch.tensor([7, -7]), 3)\ntensor([1, 2])"},
    {"rsqrt", ">>> torch.rsqrt(torch.tensor([4.0]))\ntensor([0.5000])"},
    {"scatter_add",
     ">>> torch.scatter_add(torch.zeros(2), 0, torch.tensor([1, 1]), "
     "torch.ones(2))\ntensor([0., 2.])"},
    {"scatter_reduce",
     ">>> torch.scatter_reduce(torch.ones(2), 0, torch.tensor([1, 1]),\n... "
     "torch.tensor([2.0, 3.0]), \"prod\")\ntensor([1., 6.])"},
    {"select",
     ">>> torch.select(torch.tensor([[1, 2], [3, 4]]), 0, 1)\ntensor([3, 4])"},
    {"sign", ">>> torch.sign(torch.tensor([-3.0, 0.0]))\ntensor([-1.,  0.])"},
    {"sin", ">>> torch.sin(torch.tensor([0.0]))\ntensor([0.])"},
    {"sinh", ">>> torch.sinh(torch.tensor([0.0]))\ntensor([0.])"},
    {"tan", ">>> torch.tan(torch.tensor([0.0]))\ntensor([0.])"},
    {"view_as_complex",
     ">>> torch.view_as_complex(torch.tensor([[1.0, 2.0]]))\ntensor([1.+2.j])"},
    {"view_as_real",
     ">>> torch.view_as_real(torch.tensor([1 + 2j]))\ntensor([[1., 2.]])"},
    {"conj", ">>> torch.conj(torch.tensor([1 + 2j]))\ntensor([1.-2.j])"},
    {"ge", ">>> torch.ge(torch.tensor([1, 2]), 2)\ntensor([False,  True])"},
    {"le", ">>> torch.le(torch.tensor([1, 2]), 1)\ntensor([ True, False])"},
    {"nextafter",
     ">>> torch.nextafter(torch.tensor([0.0]), torch.tensor([1.0])) > "
     "0\ntensor([True])"},
    {"trunc", ">>> torch.trunc(torch.tensor([1.7, -1.7]))\ntensor([ 1., -1.])"},
};

}  // namespace holdfast::python

#endif  // HOLDFAST_PYTHON_CLIENT_SRC_OP_EXAMPLES_H_
