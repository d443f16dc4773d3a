/* Building: packets that are alike, one behind the other; and messages out of their parts. */

#include "kernel.h"

typedef struct {
    unsigned long long seq, token_round, timestamp, step;
} Numbers;

static int numbers_from(PyObject *tuple, Py_ssize_t packets, Numbers *numbers) {
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != 4) {
        PyErr_SetString(PyExc_TypeError, "lay takes four numbers in a tuple");
        return 0;
    }
    unsigned long long *into[] = {&numbers->seq, &numbers->token_round, &numbers->timestamp, &numbers->step};
    for (int index = 0; index < 4; index++) {
        *into[index] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(tuple, index));
        if (PyErr_Occurred())
            return 0;
    }
    numbers->step = numbers->step != 0;
    unsigned long long more = packets ? (unsigned long long)packets - 1 : 0;
    if (numbers->seq > UINT64_MAX - more || numbers->timestamp > UINT64_MAX - more * numbers->step) {
        PyErr_SetString(PyExc_OverflowError, "packets are numbered beyond all bounds");
        return 0;
    }
    return 1;
}

PyObject *all_bytes(PyObject *given) {
    PyObject *payloads = PySequence_Fast(given, "payloads are a sequence"), *copied;
    Py_ssize_t number = payloads ? PySequence_Size(payloads) : 0;
    for (Py_ssize_t index = 0; index < number; index++) {
        if (PyBytes_Check(item_of(payloads, index)))
            continue;
        copied = PySequence_List(payloads);
        Py_DECREF(payloads);
        payloads = copied;
        for (; payloads && index < number; index++) {
            PyObject *item = PyList_GetItem(payloads, index), *bytes = NULL;
            if (PyObject_CheckBuffer(item))
                bytes = PyBytes_FromObject(item);
            else
                PyErr_SetString(PyExc_TypeError, "a payload is not bytes");
            if (bytes == NULL || PyList_SetItem(payloads, index, bytes) < 0) {
                Py_DECREF(payloads);
                return NULL;
            }
        }
        break;
    }
    return payloads;
}

/* Which part each packet has: -1 with an error when that is none. */
static long kind_of(PyObject *kinds, Py_ssize_t index) {
    long kind = PyLong_AsLong(item_of(kinds, index));
    if (!PyErr_Occurred() && (kind < 0 || kind > 0xFF >> PART_SHIFT))
        PyErr_SetString(PyExc_ValueError, "a part that does not exist");
    return PyErr_Occurred() ? -1 : kind;
}

typedef struct {
    PyObject *payloads, *kinds; /* lists or tuples */
    Py_ssize_t each, packets, descriptors_size, part_size;
    const char *fixed, *descriptors;
} Load;

static Py_ssize_t laid_size(const Load *load, Py_ssize_t index) {
    Py_ssize_t size = PyBytes_Size(item_of(load->payloads, index));
    return size < load->part_size ? load->part_size : size;
}

static int put_packets(const Load *load, const Numbers *numbers, unsigned char *at) {
    for (Py_ssize_t packet = 0; packet < load->packets; packet++) {
        memcpy(at, load->fixed, FIXED_SIZE);
        if (load->kinds) {
            long kind = kind_of(load->kinds, packet);
            if (kind < 0)
                return 0;
            at[FLAGS_AT] |= (unsigned char)(kind << PART_SHIFT);
        }
        put64(at + FIXED_SIZE, numbers->seq + (uint64_t)packet);
        put64(at + FIXED_SIZE + 8, numbers->token_round);
        put64(at + FIXED_SIZE + 16, numbers->timestamp + numbers->step * (uint64_t)packet);
        at += HEADER_SIZE;
        memcpy(at, load->descriptors, (size_t)load->descriptors_size);
        at += load->descriptors_size;
        for (Py_ssize_t message = 0; message < load->each; message++) {
            Py_ssize_t index = packet * load->each + message;
            PyObject *payload = item_of(load->payloads, index);
            Py_ssize_t size = PyBytes_Size(payload), laid = laid_size(load, index);
            if (size < laid) { /* the last part: padded, so that all are alike */
                at[-3] = (unsigned char)(size >> 8);
                at[-2] = (unsigned char)size;
                memset(at + size, 0, (size_t)(laid - size));
            }
            memcpy(at, PyBytes_AsString(payload), (size_t)size);
            at += laid;
        }
    }
    return 1;
}

static PyObject *laid(Load *load, PyObject *tuple) {
    Numbers numbers;
    Py_ssize_t number = PySequence_Size(load->payloads);
    load->packets = number / load->each;
    if (number % load->each || (load->kinds && PySequence_Size(load->kinds) != load->packets)) {
        PyErr_SetString(PyExc_ValueError, "payloads that do not fill their packets");
        return NULL;
    }
    if (!numbers_from(tuple, load->packets, &numbers))
        return NULL;
    Py_ssize_t size = (HEADER_SIZE + load->descriptors_size) * load->packets;
    for (Py_ssize_t index = 0; index < number; index++)
        size += laid_size(load, index);
    PyObject *packets = PyBytes_FromStringAndSize(NULL, size);
    if (packets && !put_packets(load, &numbers, (unsigned char *)PyBytes_AsString(packets))) {
        Py_DECREF(packets);
        return NULL;
    }
    return packets;
}

/* lay(fixed, descriptors, payloads, each, kinds, numbers): bytes */
PyObject *lay(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    if (!has_arguments("lay", count, 6))
        return NULL;
    PyObject *fixed = arguments[0], *descriptors = arguments[1], *result = NULL;
    Load load = {.each = PyLong_AsSsize_t(arguments[3])};
    if (PyErr_Occurred())
        return NULL;
    if (!PyBytes_Check(fixed) || PyBytes_Size(fixed) != FIXED_SIZE || !PyBytes_Check(descriptors) || load.each < 1) {
        PyErr_SetString(PyExc_ValueError, "lay takes the fixed part of a header, descriptors, and payloads for them");
        return NULL;
    }
    load.fixed = PyBytes_AsString(fixed);
    load.descriptors = PyBytes_AsString(descriptors);
    load.descriptors_size = PyBytes_Size(descriptors);
    load.payloads = all_bytes(arguments[2]);
    load.kinds = load.payloads ? PySequence_Fast(arguments[4], "parts are a sequence") : NULL;
    if (load.kinds && !PySequence_Size(load.kinds)) {
        Py_DECREF(load.kinds);
        load.kinds = NULL;
    }
    if (load.kinds && (load.each != 1 || load.descriptors_size < DESCRIPTOR_SIZE))
        PyErr_SetString(PyExc_ValueError, "a packet has one part, and a descriptor of it");
    else if (load.kinds)
        load.part_size = number16((const unsigned char *)load.descriptors + load.descriptors_size - 3);
    if (!PyErr_Occurred())
        result = laid(&load, arguments[5]);
    Py_XDECREF(load.payloads);
    Py_XDECREF(load.kinds);
    return result;
}

/* Where the parts of one message end: behind its last one, or before the first of another message. */
static Py_ssize_t end_of(const char *kinds, Py_ssize_t start, Py_ssize_t number) {
    for (Py_ssize_t index = start; index < number; index++) {
        if (kinds[index] == PART_LAST)
            return index + 1;
        if (kinds[index] == PART_FIRST && index > start)
            return index;
    }
    return number;
}

static int append(PyObject *list, PyObject *item) {
    int result = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return result;
}

/* Takes over the reference of begun, and returns one; NULL is an error. */
static PyObject *take_parts(PyObject *begun, PyObject *payloads, Py_ssize_t start, Py_ssize_t end) {
    PyObject *some = PySequence_GetSlice(payloads, start, end);
    Py_ssize_t held = PyList_Size(begun);
    if (some == NULL || PyList_SetSlice(begun, held, held, some) < 0) {
        Py_DECREF(begun);
        begun = NULL;
    }
    Py_XDECREF(some);
    return begun;
}

/* gather(kinds, payloads, begun): behind which parts messages are complete, these messages, and what has begun */
PyObject *gather(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    if (!has_arguments("gather", count, 3))
        return NULL;
    PyObject *begun = arguments[2] == Py_None ? NULL : arguments[2], *payloads = arguments[1];
    if (!PyBytes_Check(arguments[0]) || !PySequence_Check(payloads) || (begun && !PyList_Check(begun))) {
        PyErr_SetString(PyExc_TypeError, "gather takes bytes, a sequence, and a list or None");
        return NULL;
    }
    const char *kinds = PyBytes_AsString(arguments[0]);
    Py_ssize_t number = PyBytes_Size(arguments[0]), start = 0;
    PyObject *ends = PyList_New(0), *whole = PyList_New(0), *empty = PyBytes_FromStringAndSize("", 0), *result = NULL;
    Py_XINCREF(begun);
    if (!ends || !whole || !empty)
        goto done;
    while (start < number) {
        Py_ssize_t end = end_of(kinds, start, number);
        if (kinds[start] == PART_FIRST) {
            Py_XDECREF(begun);
            begun = PyList_New(0);
            if (begun == NULL)
                goto done;
        }
        if (begun) {
            begun = take_parts(begun, payloads, start, end);
            if (begun == NULL)
                goto done;
            if (kinds[end - 1] == PART_LAST) {
                if (append(whole, PyObject_CallMethod(empty, "join", "O", begun)) < 0 ||
                    append(ends, PyLong_FromSsize_t(end)) < 0)
                    goto done;
                Py_DECREF(begun);
                begun = NULL;
            }
        }
        start = end;
    }
    result = Py_BuildValue("(OOO)", ends, whole, begun ? begun : Py_None);
done:
    Py_XDECREF(ends);
    Py_XDECREF(whole);
    Py_XDECREF(empty);
    Py_XDECREF(begun);
    return result;
}
