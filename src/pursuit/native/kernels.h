// The structures that kernels read and the interface of a level: all that module.cpp and the levels share.
//
// A level is one copy of the kernels, compiled for one generation of processors. Here are plain structures and pure
// interfaces; their few functions are always inlined, as the linker would keep one copy of them for all levels.
#pragma once
#include <cstdint>
#include "events.h"

#define ALWAYS_INLINE [[gnu::always_inline]] inline

constexpr int64_t UNSOLVED = -1;  // the number of atoms of a signal that has no code yet

enum class Method { omp, mp, ols, nnomp, lasso, positive_lasso };
enum class Search { int16, float32 };

// Entry i of atom j is atoms[j * atom_stride + i * entry_stride].
template <class T> struct Dictionary {
    int d, n;  // entries of an atom, atoms
    const T *atoms;
    int64_t atom_stride, entry_stride;
    const T *norms;
    const T *gram;  // n x n, or null

    ALWAYS_INLINE const T *atom(int64_t j) const { return atoms + j * atom_stride; }
    ALWAYS_INLINE const T *gram_row(int64_t j) const { return gram + j * n; }
};

// Signals, and space for their codes: atoms in increasing order, their weights, how many there are.
template <class T> struct Tile {
    int64_t count;
    int width;         // atoms that a code has space for
    const T *y;        // count x d
    const T *weights;  // count x d, of the entries of y; or null
    const int64_t *limits;
    const T *tols;        // a pursuit stops where the norm of the residual is at most this; negative: never
    const T *penalties;   // of the Lasso
    int32_t *atoms;       // count x width
    T *x;                 // count x width
    int64_t *counts;      // UNSOLVED until a strategy has succeeded
    const int32_t *stop;  // not 0 once the codes are no longer wanted
};

// Throws where `stop` is set, or where a signal such as Ctrl-C has come to the main thread and this is it (module.cpp).
void check_interrupt(const int32_t *stop);

// work(piece) for all pieces, on at most `threads` threads (parallel.cpp).
void in_parallel(int threads, int pieces, void (*work)(void *context, int piece), void *context);
template <class Work> void in_parallel(int threads, int pieces, Work work) {
    in_parallel(threads, pieces, [](void *context, int piece) { (*static_cast<Work *>(context))(piece); }, &work);
}

// A directed graph: the edges that leave node i are starts[i] to starts[i + 1] - 1, and lead to `heads`.
struct Graph {
    const int32_t *starts, *heads;
    int64_t nodes, edges;
};

// routes.cpp: how much goes over each edge where demand (count x nodes) goes from the origins over shortest routes.
void all_or_nothing(const Graph &graph, const double *costs, const int64_t *origins, int64_t count,
                    const double *demand, int threads, double *loads);

// fast.h
template <class T> struct FastPursuits : Kernel {
    virtual void solve(const Tile<T> &) const = 0;
};

// direct.h
template <class T> struct DirectPursuits : Kernel {
    virtual int64_t vectors(T *out) = 0;
    virtual void advance(T *products) = 0;
};

// screen.h and alone.h
template <class T> struct Screening : Kernel {
    // Writes the ends of intervals of |<a, g>| (or of -<a, g>, if not `is_signed`) as the plain product computes it,
    // for the `count` columns `which` or, less precisely, for all if that is null; false where g is out of range.
    virtual bool intervals(const double *g, const int64_t *which, int64_t count, bool is_signed, int threads,
                           double *lower, double *upper) = 0;
    // Writes <a, g> and <|a|, |g|> for some columns.
    virtual void products(const double *g, const int64_t *which, int64_t count, double *value, double *size) = 0;
    virtual void solve_alone(Method, const Tile<T> &, int threads) = 0;
};

// subset.h: f(b) = constant - c'b + b'Hb / 2 over few columns, as the header says.
struct Quadratic {
    int p;
    const double *H, *c, *d, *M;
    const double *root;  // the square roots of the diagonal of H before columns were projected out
    double constant, noise;
    bool positive;  // whether b >= 0
};

struct Relaxation {
    int m, limit, sweeps;      // columns that may be used; rounds at most, sweeps of a round
    double cut, tolerance;     // it ends at a bound of the cut, or where rounds gain less than this of what is missing
    double mu;                 // first and last price of a column
    const int8_t *state;       // 0: free, 1: in, -1: out, 2: the largest, at its start
    double *b;                 // first and last point
    const double *w, *shared;  // c - Qu at a u that many relaxations share, and that u; or null
    double *psi, *best;        // at the point of the best bound, and that point
    int8_t *screened;          // the state with what the bound decides
    double bound;
    int branch, rounds;  // the free column with the largest |b|, -1 if there is none
};

// greedy.h: samples are rows[0], ... of X, which is dense or by sparse columns (values, indices, pointers).
template <class T> struct GreedyMatrix {
    int n, p, all_rows;
    const int64_t *rows;
    const T *dense;  // or null
    int64_t row_stride, column_stride;
    const T *values;
    const int32_t *indices;
    const int64_t *pointers;
};

enum class GreedyLoss { squares, logistic, poisson, huber, multinomial };

// Problem k has the weights and the held-out weights of row group[k]; each row is divided by its sum.
struct GreedyTask {
    GreedyLoss loss;
    int targets, classes, groups, count;
    double width, separated;
    bool intercept;
    const double *y;  // targets x n
    const double *weights, *held;
    const int32_t *group;
    const double *l2, *tols;
};

struct GreedyPaths : Kernel {
    virtual int advance(int32_t *entered) = 0;  // how many problems chose a column; -1 for those that did not
    virtual void read(double *values, double *losses) const = 0;
    virtual int size(int problem) const = 0;
    virtual void coefficients(int problem, double *coef, double *intercept) const = 0;
    virtual void scales(double *out) const = 0;
};

// descent.h: a matrix by the entries of its columns, or dense (without `indices`); blocks of its columns (number `width`
// is a column of ones), and what their coefficients cost.
struct PricedColumns {
    int rows;
    int64_t width, count;
    const double *values;
    const int32_t *indices;
    const int64_t *pointers, *columns, *starts;
    const double *prices, *ridges;
};

// lasso_path.h: columns one after the other, in blocks of orthogonal ones; prices of the norms of their coefficients.
struct BlockColumns {
    int rows;
    int64_t width, count;
    const double *columns, *y, *prices;
    const int64_t *starts;
    double l2;
};

struct LassoPath : Kernel {
    virtual int minimise(double penalty, double tol, int most, double &value, double &gap) = 0;  // how many turns
    virtual void coefficients(double *out) const = 0;
};

template <class T> struct Level {
    FastPursuits<T> *(*fast)(const Dictionary<T> &, Method, Search);
    void (*one_by_one)(const Dictionary<T> &, Method, const Tile<T> &, const T *products);
    DirectPursuits<T> *(*direct)(const Dictionary<T> &, Method, const Tile<T> &, const T *norms, int64_t norms_stride);
    Screening<T> *(*screen)(const Dictionary<T> &, int threads);
    void (*squared_norms)(const Dictionary<T> &, int64_t start, int64_t stop, T *out);
    TranslateKernels<T> translates;
    GreedyPaths *(*greedy)(const GreedyMatrix<T> &, const GreedyTask &, int threads);
};

struct Levels {
    const char *name;
    Level<double> float64;
    Level<float> float32;
    // <A[rows[e]], B[cols[e]]> for every e
    void (*row_products)(const double *A, const double *B, int width, const int32_t *rows, const int32_t *cols,
                         int64_t count, double *out);
    void (*relax_subset)(const Quadratic &, Relaxation &);
    // adds M'M to the lower triangle of G, for a sparse matrix M by rows with increasing indices
    void (*lower_gram)(const int32_t *pointers, const int32_t *indices, const double *data, int64_t rows, double *G,
                       int64_t n);
    int (*descend)(const PricedColumns &, const double *h, double tol, int most, double *v, double *b, double *along);
    LassoPath *(*lasso_path)(const BlockColumns &);
};

// The level that this processor has (module.cpp).
const Levels &level();
