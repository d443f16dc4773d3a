/* What the files of the compiled kernel share. It has the functions of ordercast/wire/pure.py and of
   ordercast/trace/kernel.py, and returns the same for the same arguments. Packets come from strangers: every place is compared with the end of its buffer before it is read. */

#ifndef ORDERCAST_KERNEL_H
#define ORDERCAST_KERNEL_H

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* The layout of data packets: ordercast/wire/header.py. */
enum {
    LENGTH_AT = 4,
    CLUSTER_AT = 6,
    CLUSTER_SIZE = 8,
    RING_AT = 22, /* kind and digest */
    RING_SIZE = 9,
    FLAGS_AT = 31,
    COUNT_AT = 32,
    PLACE_AT = 33,
    FIXED_SIZE = 35, /* here stands the seq */
    STAMPS_AT = 43,
    HEADER_SIZE = 59,
    ORIGIN_SIZE = 18,
    DESCRIPTOR_SIZE = 7,
    SERVICE_MAX = 5,
    SHORT_BLOCK = 9,
    NUMBER_SIZE = 8,
    LONE_BYTE = 0x80,
    SAFE = 1,
    RECOVERED = 2,
    EXTENDED = 8,
    PART_SHIFT = 4,
    BELOW_PART = 15,
    PART_FIRST = 1,
    PART_MIDDLE = 2,
    PART_LAST = 3
};

/* The first bytes of every packet that is not sealed. */
static const unsigned char OPENING[] = {0x6f, 0x43, 0x3, 0x0};

static inline unsigned number16(const unsigned char *at) { return (unsigned)at[0] << 8 | at[1]; }

static inline uint32_t number32(const unsigned char *at) { return (uint32_t)number16(at) << 16 | number16(at + 2); }

static inline uint64_t number64(const unsigned char *at) { return (uint64_t)number32(at) << 32 | number32(at + 4); }

static inline void put64(unsigned char *at, uint64_t number) {
    for (int index = 7; index >= 0; index--, number >>= 8)
        at[index] = (unsigned char)number;
}

/* A list or a tuple, item by item; whoever calls has looked at both. The reference is borrowed. */
static inline PyObject *item_of(PyObject *sequence, Py_ssize_t index) {
    return PyList_Check(sequence) ? PyList_GetItem(sequence, index) : PyTuple_GetItem(sequence, index);
}

/* The payloads as bytes, in a list or tuple. */
PyObject *all_bytes(PyObject *given);

int has_arguments(const char *name, Py_ssize_t given, Py_ssize_t wanted);

PyObject *read_run(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *gather(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *lay(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *stamp(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *cut(PyObject *module, PyObject *const *arguments, Py_ssize_t count);
PyObject *look(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

PyObject *in_a_row(PyObject *module, PyObject *const *arguments, Py_ssize_t count);

int add_seal(PyObject *module);

#endif
