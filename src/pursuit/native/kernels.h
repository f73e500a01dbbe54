// What the kernels are told, and how they are called: all that the module and the processor levels share.
//
// A level (one copy of the kernels, compiled for one generation of processors) is a table of plain functions on plain
// structures, so that no code is shared between levels.
#pragma once
#include <cstdint>

constexpr int64_t UNSOLVED = -1;  // in place of the number of atoms of a code

enum class Method { omp, mp, ols, nnomp };
enum class Search { int16, float32 };

// Atoms are the rows of a matrix, or, strided, its columns: entry i of atom j is atoms[j * atom_stride + i * entry_stride].
template <class T> struct Dictionary {
    int d, n;           // entries of an atom, atoms
    const T *atoms;
    int64_t atom_stride, entry_stride;
    const T *norms;
    const T *gram;      // n x n, or null

    const T *atom(int j) const { return atoms + j * atom_stride; }
    const T *gram_row(int j) const { return gram + int64_t(j) * n; }
};

// Signals, and room for their codes: atoms in increasing order, their weights, how many there are.
template <class T> struct Tile {
    int64_t count;
    int width;          // atoms that a code has room for
    const T *y;         // count x d
    const T *weights;   // count x d, of the entries of y; or null
    const int64_t *limits;
    const T *tols;      // norms of residuals that are small enough; negative: none is
    int32_t *atoms;     // count x width
    T *x;               // count x width
    int64_t *counts;    // UNSOLVED until a strategy has succeeded
};

// Threads that share the pieces of a task; they wait busily between two tasks, as waking them takes longer than one.
class Team {
    struct Shared;
    Shared *shared;

  public:
    explicit Team(int threads);
    ~Team();
    Team(const Team &) = delete;
    void run(int pieces, void (*work)(void *context, int piece), void *context);
    template <class Work> void run(int pieces, Work &work) {
        run(pieces, [](void *context, int piece) { (*static_cast<Work *>(context))(piece); }, &work);
    }
};

// A vector in 16 bits: 2^exponent (p + a rest). In these units, the norm of p and (an upper bound of) that of the rest.
struct Rounded {
    const int16_t *p;
    double length, rest;
    int exponent;
};

// A task for the columns `which` (null: all) of a screened matrix, numbers start to stop of them.
struct Columns {
    const int64_t *which;
    int64_t start, stop;
};

template <class T> struct Level {
    struct {
        void *(*create)(const Dictionary<T> &, Method, Search);
        void (*solve)(const void *, const Tile<T> &);
        void (*destroy)(void *);
    } fast;
    // products: one row of <y, atom> for each signal that is not solved
    void (*careful)(const Dictionary<T> &, Method, const Tile<T> &, const T *products);
    struct {
        void *(*create)(const Dictionary<T> &, Method, const Tile<T> &, const T *norms, int64_t norms_stride);
        int64_t (*vectors)(void *, T *out);
        void (*advance)(void *, T *products);
        void (*destroy)(void *);
    } direct;
    struct {
        void *(*create)(const Dictionary<T> &);
        void (*quantise)(void *, int64_t start, int64_t stop);
        void (*measure)(void *);
        void (*begin_refining)(void *);
        void (*refine)(void *, int64_t start, int64_t stop);
        bool (*round)(const void *, const double *g, double rounding, int16_t *p, Rounded &);
        double (*enclose)(const void *, const Rounded &, Columns, bool fine, bool is_signed, double *lower, double *upper);
        int64_t (*winner)(const void *, const double *g, const double *upper, double bar, bool is_signed,
                          int64_t most, double *value, int64_t *tried);
        void (*products)(const void *, const double *g, Columns, double *value, double *size);
        void (*destroy)(void *);
    } screen;
    void (*alone)(const void *screen, const Dictionary<T> &, Method, const Tile<T> &, Team &);
};

struct Levels {
    const char *name;
    Level<double> float64;
    Level<float> float32;
    // <A[rows[e]], B[cols[e]]> for every e, and the lower triangle of M'M for a sparse matrix M by rows
    void (*row_products)(const double *A, const double *B, int width, const int32_t *rows, const int32_t *cols,
                         int64_t count, double *out);
    void (*lower_gram)(const int32_t *pointers, const int32_t *indices, const double *data, int64_t rows, double *G, int64_t n);
};
