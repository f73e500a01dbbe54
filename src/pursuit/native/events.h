// Translates of templates: the structures that the kernels, their cache of products and the Python module share.
//
// A template is a list of parts, each a stretch of `width` samples on one channel and, in pictures, one of `height` rows.
#pragma once
#include <cstdint>

// What a level makes and the module ends. Its destructor is in module.cpp, so that no level has one of its own.
struct Kernel {
    virtual ~Kernel();
};

enum class EventMethod { mp, omp, nnomp, lasso };

template <class T> struct Templates {
    int count, channels, height, width;
    const int32_t *part_starts;  // of template k: parts part_starts[k] to part_starts[k + 1] - 1
    const int32_t *part_channels, *part_rows;
    const T *samples;  // parts x width
    const int32_t
        *factor_starts;  // or null: template k is a sum over its factors of mixing (parts) times filter (width)
    const int64_t *mixing_starts;  // of template k, factors x parts
    const T *mixing, *filters;
    const double *squares;            // squared norms
    const int64_t *neighbour_starts;  // the templates that share a channel with k, k among them, in increasing order
    const int32_t *neighbours;

    int parts(int k) const { return part_starts[k + 1] - part_starts[k]; }
    int64_t neighbour_count(int k) const { return neighbour_starts[k + 1] - neighbour_starts[k]; }
    int64_t products_of_pair() const { return int64_t(2 * height - 1) * (2 * width - 1); }
};

// Sample t of row r of channel c is data[c * channel_stride + r * row_stride + t * stride].
template <class T> struct Signal {
    const T *data;
    int64_t rows, columns, channel_stride, row_stride, stride;
};

struct EventRules {
    EventMethod method;
    bool positive;
    double threshold;           // an atom enters where that lowers ||r||^2 (of the Lasso: where |<r, a>|) by (is) more
    double penalty;             // of the Lasso
    double prior, least, most;  // of amplitudes, by mp: prior ||a||^2 (w - 1)^2, least <= w <= most
    int64_t limit, turns, refractory, row_step, step;  // turns: after so many without an end, there is none
    const int32_t *stop;
};

struct Event {
    int64_t row, column;
    int32_t kernel;  // the number of the template
    double weight, score;
};

// <template k at (0, 0), template j at (dy, dx)> for every neighbour j of k, |dy| < height and |dx| < width.
template <class T> struct Products : Kernel {
    virtual const T *hold(int k) = 0;  // valid until it is released
    virtual void release(int k) = 0;
};

template <class T> struct EventSearch : Kernel {
    virtual void start(const Event *known, int64_t count) = 0;  // events whose sum has been taken from the signal
    virtual bool run() = 0;                                     // false: it did not come to an end
    virtual int64_t count() const = 0;
    virtual void copy(Event *out) const = 0;
};

template <class T> struct TranslateKernels {
    void (*products)(const Templates<T> &, int k, T *out);
    void (*correlate)(const Templates<T> &, const Signal<T> &, T *out);  // count x rows x columns rounded up to 128
    EventSearch<T> *(*search)(const Templates<T> &, const EventRules &, const Signal<T> &, Products<T> &);
};
