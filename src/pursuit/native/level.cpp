// The kernels of one processor level: compiled once for each, with -DLEVEL=its name and its compiler flags.
#include "alone.h"
#include "direct.h"
#include "fast.h"

namespace {

void row_products(const double *A, const double *B, int width, const int32_t *rows, const int32_t *cols, int64_t count,
                  double *out) {
    for (int64_t e = 0; e < count; ++e) out[e] = dot(A + int64_t(rows[e]) * width, B + int64_t(cols[e]) * width, width);
}

void lower_gram(const int32_t *pointers, const int32_t *indices, const double *data, int64_t rows, double *G, int64_t n) {
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

template <class T>
DirectPursuits<T> *direct(const Dictionary<T> &D, Method method, const Tile<T> &tile, const T *norms, int64_t stride) {
    return new Direct<T>(D, method, tile, norms, stride);
}

template <class T> Screening<T> *screen(const Dictionary<T> &D) { return new Screened<T>(D); }

// Of atoms start to stop; for matrices by rows, a block of columns at a time.
template <class T> void squared_norms(const Dictionary<T> &D, int64_t start, int64_t stop, T *out) {
    constexpr int N = LANES<T>, BLOCK = 8 * N;
    int64_t j = start;
    for (; D.atom_stride == 1 && j + BLOCK <= stop; j += BLOCK) {
        Vec<T> sums[8] = {};
        for (int i = 0; i < D.d; ++i)
            for (int k = 0; k < 8; ++k) {
                const Vec<T> v = load(D.atom(j) + i * D.entry_stride + k * N);
                sums[k] += v * v;
            }
        for (int k = 0; k < 8; ++k) store(out + j + k * N, sums[k]);
    }
    for (; j < stop; ++j) {
        out[j] = D.entry_stride == 1 ? dot(D.atom(j), D.atom(j), D.d) : 0;
        for (int i = 0; D.entry_stride != 1 && i < D.d; ++i)
            out[j] += D.atom(j)[i * D.entry_stride] * D.atom(j)[i * D.entry_stride];
    }
}

template <class T> constexpr Level<T> kernels = {fast<T>, careful<T>, direct<T>, screen<T>, squared_norms<T>};

}  // namespace

#define TEXT(x) #x
#define NAME(x) TEXT(x)
namespace LEVEL {
extern const Levels level;
const Levels level = {NAME(LEVEL), kernels<double>, kernels<float>, row_products, lower_gram};
}
