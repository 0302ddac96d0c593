// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Pade approximants of the exponential function, as matrix_exp scales and
// squares with (Higham 2005, "The scaling and squaring method for the matrix
// exponential revisited"). Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_PADE_H_
#define HOLDFAST_KERNELS_PADE_H_

#include <cmath>
#include <iterator>

namespace holdfast {

// Coefficients of the numerator; the denominator has alternating signs.
struct PadeApproximant {
  int degree;
  double norm;  // accurate to double precision up to this 1-norm
  double b[14];
};
inline constexpr PadeApproximant kPadeApproximants[] = {
    {3, 1.495585217958292e-2, {120, 60, 12, 1}},
    {5, 2.539398330063230e-1, {30240, 15120, 3360, 420, 30, 1}},
    {7,
     9.504178996162932e-1,
     {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}},
    {9,
     2.097847961257068,
     {17643225600, 8821612800, 2075673600, 302702400, 30270240, 2162160, 110880,
      3960, 90, 1}},
    {13,
     5.371920351148152,
     {64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800,
      129060195264000, 10559470521600, 670442572800, 33522128640, 1323241920,
      40840800, 960960, 16380, 182, 1}},
};

// The shortest one for matrices of that norm, or the longest.
inline const PadeApproximant& PadeFor(double norm) {
  const PadeApproximant* use = std::begin(kPadeApproximants);
  while (use + 1 != std::end(kPadeApproximants) && norm > use->norm) ++use;
  return *use;
}

// How often a matrix of that norm is halved, and its exponential squared.
inline int PadeSquarings(const PadeApproximant& use, double norm) {
  return norm > use.norm
             ? static_cast<int>(std::ceil(std::log2(norm / use.norm)))
             : 0;
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_PADE_H_
