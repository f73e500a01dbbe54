// The kernels of one processor level: compiled once for each, with -DLEVEL=its name and its compiler flags.
#include "alone.h"
#include "descent.h"
#include "direct.h"
#include "fast.h"
#include "greedy.h"
#include "lasso.h"
#include "lasso_path.h"
#include "subset.h"
#include "translates.h"

namespace {

void row_products(const double *A, const double *B, int width, const int32_t *rows, const int32_t *cols, int64_t count,
                  double *out) {
    for (int64_t e = 0; e < count; ++e) out[e] = dot(A + int64_t(rows[e]) * width, B + int64_t(cols[e]) * width, width);
}

void lower_gram(const int32_t *pointers, const int32_t *indices, const double *data, int64_t rows, double *G,
                int64_t n) {
    for (int64_t r = 0; r < rows; ++r)
        for (int32_t a = pointers[r]; a < pointers[r + 1]; ++a) {
            double *row = G + indices[a] * n;
            for (int32_t b = pointers[r]; b <= a; ++b) row[indices[b]] += data[a] * data[b];
        }
}

template <class T> FastPursuits<T> *fast(const Dictionary<T> &D, Method method, Search search) {
    if (search == Search::int16) return new FastOver<T, int16_t, false>(D);
    if (method == Method::ols) return new FastOver<T, float, true>(D);
    return new FastOver<T, float, false>(D);
}

bool is_lasso(Method method) { return method == Method::lasso || method == Method::positive_lasso; }

template <class T> void one_by_one(const Dictionary<T> &D, Method method, const Tile<T> &tile, const T *products) {
    is_lasso(method) ? lasso<T>(D, method, tile, products) : careful<T>(D, method, tile, products);
}

template <class T>
DirectPursuits<T> *direct(const Dictionary<T> &D, Method method, const Tile<T> &tile, const T *norms, int64_t stride) {
    if (is_lasso(method)) return new InStep<Lasso<T>, T>(D, method, tile, norms, stride);
    return new InStep<FromResidual<T>, T>(D, method, tile, norms, stride);
}

template <class T> Screening<T> *screen(const Dictionary<T> &D, int threads) { return new Screened<T>(D, threads); }

// Of atoms start to stop; for matrices by rows, four rows at a time.
template <class T> void squared_norms(const Dictionary<T> &D, int64_t start, int64_t stop, T *out) {
    const int64_t across = D.atom_stride, down = D.entry_stride;
    for (int64_t j = start; j < stop; ++j) out[j] = down == 1 ? dot(D.atom(j), D.atom(j), D.d) : 0;
    int i = 0;
    for (; across == 1 && down != 1 && i + 4 <= D.d; i += 4) {
        const T *row = D.atoms + i * down;
#pragma omp simd
        for (int64_t j = start; j < stop; ++j)
            out[j] += row[j] * row[j] + row[j + down] * row[j + down] + row[j + 2 * down] * row[j + 2 * down] +
                      row[j + 3 * down] * row[j + 3 * down];
    }
    for (; down != 1 && i < D.d; ++i)
        for (int64_t j = start; j < stop; ++j) out[j] += D.atom(j)[i * down] * D.atom(j)[i * down];
}

template <class T> GreedyPaths *greedy(const GreedyMatrix<T> &X, const GreedyTask &task, int threads) {
    return new GreedyOver<T>(X, task, threads);
}

LassoPath *lasso_path(const BlockColumns &X) { return new LassoOver(X); }

template <class T> constexpr Level<T> kernels = {fast<T>,          one_by_one<T>,        direct<T>, screen<T>,
                                                 squared_norms<T>, translate_kernels<T>, greedy<T>};

}  // namespace

#define TEXT(x) #x
#define NAME(x) TEXT(x)
namespace levels {
extern const Levels LEVEL;
const Levels LEVEL = {NAME(LEVEL),  kernels<double>, kernels<float>, row_products,
                      relax_subset, lower_gram,      descend,        lasso_path};
}  // namespace levels
