// The kernels of one processor level: compiled once for each, with -DLEVEL=its name and its compiler flags.
#include "alone.h"
#include "direct.h"
#include "fast.h"

namespace {

template <class T> struct FastTables {
    const Method method;
    Tables<T, int16_t> *int16 = nullptr;
    Tables<T, float> *float32 = nullptr;
    FastTables(const Dictionary<T> &D, Method method, Search search) : method(method) {
        if (search == Search::int16) int16 = new Tables<T, int16_t>(D);
        else float32 = new Tables<T, float>(D);
    }
    ~FastTables() { delete int16, delete float32; }

    void solve(const Tile<T> &tile) const {
        if (int16) Fast<T, int16_t, false>(*int16, tile).solve();
        else if (method == Method::ols) Fast<T, float, true>(*float32, tile).solve();
        else Fast<T, float, false>(*float32, tile).solve();
    }
};

void row_products(const double *A, const double *B, int width, const int32_t *rows, const int32_t *cols, int64_t count, double *out) {
    for (int64_t e = 0; e < count; ++e) out[e] = dot(A + int64_t(rows[e]) * width, B + int64_t(cols[e]) * width, width);
}

// Adds M'M to the lower triangle of G, for a sparse matrix M by rows with increasing indices.
void lower_gram(const int32_t *pointers, const int32_t *indices, const double *data, int64_t rows, double *G, int64_t n) {
    for (int64_t r = 0; r < rows; ++r)
        for (int32_t a = pointers[r]; a < pointers[r + 1]; ++a) {
            double *row = G + indices[a] * n;
            for (int32_t b = pointers[r]; b <= a; ++b) row[indices[b]] += data[a] * data[b];
        }
}

template <class C> C *as(void *object) { return static_cast<C *>(object); }
template <class C> const C *as(const void *object) { return static_cast<const C *>(object); }
template <class C> void destroy(void *object) { delete as<C>(object); }

template <class T> constexpr Level<T> kernels = {
    {
        [](const Dictionary<T> &D, Method method, Search search) -> void * { return new FastTables<T>(D, method, search); },
        [](const void *tables, const Tile<T> &tile) { as<FastTables<T>>(tables)->solve(tile); },
        destroy<FastTables<T>>,
    },
    careful<T>,
    {
        [](const Dictionary<T> &D, Method method, const Tile<T> &tile, const T *norms, int64_t stride) -> void * {
            return new Direct<T>(D, method, tile, norms, stride);
        },
        [](void *direct, T *out) { return as<Direct<T>>(direct)->vectors(out); },
        [](void *direct, T *products) { as<Direct<T>>(direct)->advance(products); },
        destroy<Direct<T>>,
    },
    {
        [](const Dictionary<T> &D) -> void * { return new Screen<T>(D); },
        [](void *screen, int64_t start, int64_t stop) { as<Screen<T>>(screen)->quantise(start, stop); },
        [](void *screen) { as<Screen<T>>(screen)->measure(); },
        [](void *screen) { as<Screen<T>>(screen)->begin_refining(); },
        [](void *screen, int64_t start, int64_t stop) { as<Screen<T>>(screen)->refine(start, stop); },
        [](const void *screen, const double *g, double rounding, int16_t *p, Rounded &out) {
            return as<Screen<T>>(screen)->round(g, rounding, p, out);
        },
        [](const void *screen, const Rounded &g, Columns some, bool fine, bool is_signed, double *lower, double *upper) {
            return as<Screen<T>>(screen)->enclose(g, some, fine, is_signed, lower, upper);
        },
        [](const void *screen, const double *g, const double *upper, double bar, bool is_signed, int64_t most, double *value,
           int64_t *tried) { return as<Screen<T>>(screen)->winner(g, upper, bar, is_signed, most, value, tried); },
        [](const void *screen, const double *g, Columns some, double *value, double *size) {
            as<Screen<T>>(screen)->products(g, some, value, size);
        },
        destroy<Screen<T>>,
    },
    [](const void *screen, const Dictionary<T> &D, Method method, const Tile<T> &tile, Team &team) {
        Alone<T> alone(*as<Screen<T>>(screen), D, method, tile, team);
        for (int64_t number = 0; number < tile.count; ++number)
            if (tile.counts[number] == UNSOLVED) alone.solve(number);
    },
};

}  // namespace

#define TEXT(x) #x
#define NAME(x) TEXT(x)
namespace LEVEL {
extern const Levels level;
const Levels level = {NAME(LEVEL), kernels<double>, kernels<float>, row_products, lower_gram};
}
