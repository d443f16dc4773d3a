/* Reading: data packets that are of this ring, sound, next in order and alike, as one run. */

#include "kernel.h"

/* A run that is being read. Its first packet has been looked at in full before any other. */
typedef struct {
    const unsigned char *first; /* the first packet */
    Py_ssize_t size;            /* of each packet */
    Py_ssize_t length;          /* of the first one, as its header says */
    Py_ssize_t alike;           /* packets of this size that fit into the read */
    Py_ssize_t count;           /* packets that are alike */
    uint64_t seq;
    unsigned flags;
    Py_ssize_t each;   /* messages in a packet */
    Py_ssize_t head;   /* bytes of the block before the descriptors */
    unsigned part;     /* of the first packet */
    int is_recovered;
    int is_searched;   /* packets behind the first were looked at */
    int is_even;       /* all payloads of the first packet have one length */
} Run;

static const unsigned char *packet_of(const Run *run, Py_ssize_t index) { return run->first + index * run->size; }

static const unsigned char *descriptors_of(const Run *run, Py_ssize_t index) {
    return packet_of(run, index) + HEADER_SIZE + run->head;
}

static unsigned length_of(const Run *run, Py_ssize_t index, Py_ssize_t message) {
    return number16(descriptors_of(run, index) + 4 * run->each + 2 * message);
}

/* The descriptors of the first packet: whether they are sound and speak of all its bytes. */
static int has_sound_messages(Run *run) {
    Py_ssize_t begin = HEADER_SIZE, end = run->length, total = 0;
    if (run->flags & EXTENDED) {
        if (begin >= end || !run->first[begin])
            return 0;
        run->head = run->first[begin] < LONE_BYTE ? run->first[begin] : 1;
        begin += run->head;
    }
    Py_ssize_t start = begin + DESCRIPTOR_SIZE * run->each;
    if (!run->each || end < start)
        return 0;
    for (Py_ssize_t index = 0; index < run->each; index++)
        if (run->first[start - run->each + index] > SERVICE_MAX)
            return 0;
    run->part = run->flags >> PART_SHIFT;
    if (run->part > PART_LAST || (run->part && run->each != 1))
        return 0;
    run->is_even = 1;
    for (Py_ssize_t index = 0; index < run->each; index++) {
        unsigned length = length_of(run, 0, index);
        run->is_even &= length == length_of(run, 0, 0);
        total += length;
    }
    return run->part == PART_LAST ? start + total <= end : start + total == end;
}

/* Bytes from the token round on that are the same in packets with a block that are alike. */
static size_t same_in_block(const Run *run) {
    return HEADER_SIZE - STAMPS_AT + (size_t)(run->head <= SHORT_BLOCK ? run->head : run->head - NUMBER_SIZE);
}

static int is_alike(const Run *run, Py_ssize_t index) {
    const unsigned char *first = run->first, *other = packet_of(run, index);
    if (run->seq > UINT64_MAX - (uint64_t)index || number64(other + FIXED_SIZE) != run->seq + (uint64_t)index)
        return 0;
    if (run->head && memcmp(first + STAMPS_AT, other + STAMPS_AT, same_in_block(run)))
        return 0;
    if (!run->part)
        return !memcmp(first, other, FIXED_SIZE) &&
               !memcmp(descriptors_of(run, 0), descriptors_of(run, index), (size_t)(DESCRIPTOR_SIZE * run->each));
    if (memcmp(first, other, FLAGS_AT) || memcmp(first + COUNT_AT, other + COUNT_AT, FIXED_SIZE - COUNT_AT))
        return 0;
    const unsigned char *mine = descriptors_of(run, 0), *its = descriptors_of(run, index);
    if (memcmp(mine, its, 4) || mine[6] != its[6])
        return 0;
    unsigned flags = other[FLAGS_AT], part = flags >> PART_SHIFT;
    Py_ssize_t room = run->size - HEADER_SIZE - run->head - DESCRIPTOR_SIZE, length = number16(its + 4);
    if ((flags & BELOW_PART) != (run->flags & BELOW_PART) || length > room)
        return 0;
    return part == PART_LAST || ((part == PART_FIRST || part == PART_MIDDLE) && length == room);
}

static PyObject *filled(PyObject *sequence, int is_list, Py_ssize_t index, PyObject *item) {
    if (item == NULL || (is_list ? PyList_SetItem(sequence, index, item) : PyTuple_SetItem(sequence, index, item)) < 0) {
        Py_DECREF(sequence);
        return NULL;
    }
    return sequence;
}

static PyObject *payloads_of(const Run *run) {
    int is_list = run->is_searched ? 1 : !run->is_even;
    Py_ssize_t number = run->count * run->each, place = 0;
    PyObject *payloads = is_list ? PyList_New(number) : PyTuple_New(number);
    for (Py_ssize_t index = 0; payloads && index < run->count; index++) {
        const unsigned char *at = descriptors_of(run, index) + DESCRIPTOR_SIZE * run->each;
        for (Py_ssize_t message = 0; payloads && message < run->each; message++) {
            unsigned length = length_of(run, index, message);
            payloads = filled(payloads, is_list, place++, PyBytes_FromStringAndSize((const char *)at, length));
            at += length;
        }
    }
    return payloads;
}

static PyObject *senders_of(const Run *run) {
    PyObject *senders = PyTuple_New(run->count * run->each);
    for (Py_ssize_t index = 0; senders && index < run->each; index++) {
        PyObject *sender = PyLong_FromUnsignedLong(number32(descriptors_of(run, 0) + 4 * index));
        if (sender == NULL) {
            Py_DECREF(senders);
            return NULL;
        }
        for (Py_ssize_t packet = 0; senders && packet < run->count; packet++) {
            Py_INCREF(sender);
            senders = filled(senders, 0, packet * run->each + index, sender);
        }
        Py_DECREF(sender);
    }
    return senders;
}

static PyObject *services_of(const Run *run) {
    const unsigned char *services = descriptors_of(run, 0) + (DESCRIPTOR_SIZE - 1) * run->each;
    PyObject *all = PyBytes_FromStringAndSize(NULL, run->count * run->each);
    char *at = all ? PyBytes_AsString(all) : NULL;
    for (Py_ssize_t index = 0; at && index < run->count; index++, at += run->each)
        memcpy(at, services, (size_t)run->each);
    return all;
}

static PyObject *parts_of(const Run *run) {
    PyObject *parts = PyBytes_FromStringAndSize(NULL, run->part && !run->is_recovered ? run->count : 0);
    char *at = parts ? PyBytes_AsString(parts) : NULL;
    for (Py_ssize_t index = 0; at && index < PyBytes_Size(parts); index++)
        at[index] = (char)(packet_of(run, index)[FLAGS_AT] >> PART_SHIFT);
    return parts;
}

/* The messages in columns; None of packets with a block that are parts or in a row, and of a recovered one. */
static PyObject *parcel_of(const Run *run, PyObject *originator) {
    if (run->is_recovered || (run->head && (run->part || run->is_searched)))
        Py_RETURN_NONE;
    PyObject *senders = senders_of(run), *services = services_of(run), *payloads = payloads_of(run), *parcel = NULL;
    if (senders && services && payloads)
        parcel = Py_BuildValue("(KOOOOni)", (unsigned long long)run->seq, originator, senders, services, payloads,
                               run->each, 0);
    Py_XDECREF(senders);
    Py_XDECREF(services);
    Py_XDECREF(payloads);
    return parcel;
}

static PyObject *fields_of(const Run *run, PyObject *originator) {
    PyObject *parts = parts_of(run), *parcel = parcel_of(run, originator);
    PyObject *fields = NULL;
    if (parts && parcel)
        fields = Py_BuildValue("(nKOniOO)", run->length, (unsigned long long)run->seq, originator, run->count,
                               (int)(run->flags & SAFE), parts, parcel);
    Py_XDECREF(parts);
    Py_XDECREF(parcel);
    return fields;
}

static int is_equal(PyObject *bytes, const unsigned char *found, Py_ssize_t size) {
    return PyBytes_Size(bytes) == size && !memcmp(PyBytes_AsString(bytes), found, (size_t)size);
}

static void search(Run *run) {
    run->count = 1;
    if (run->length != run->size || run->is_recovered || run->alike < 2)
        return;
    if (!run->part && !run->head && !run->is_even)
        return;
    run->is_searched = 1;
    while (run->count < run->alike && is_alike(run, run->count))
        run->count++;
}

/* read_run(data, start, size, cluster, ring, members, expected): the fields of a PacketRun behind data and start, or
   None when the first packet is not what was expected. */
PyObject *read_run(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    if (!has_arguments("read_run", count, 7))
        return NULL;
    PyObject *data = arguments[0], *cluster = arguments[3], *ring = arguments[4], *members = arguments[5];
    if (!PyBytes_Check(data) || !PyBytes_Check(cluster) || !PyBytes_Check(ring) || !PyTuple_Check(members)) {
        PyErr_SetString(PyExc_TypeError, "read_run takes bytes, two numbers, bytes, bytes, a tuple and a number");
        return NULL;
    }
    Py_ssize_t start = PyLong_AsSsize_t(arguments[1]), size = PyLong_AsSsize_t(arguments[2]), total = PyBytes_Size(data);
    if (PyErr_Occurred())
        return NULL;
    unsigned long long expected = PyLong_AsUnsignedLongLong(arguments[6]);
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_OverflowError))
            return NULL;
        PyErr_Clear(); /* no packet has such a number */
        Py_RETURN_NONE;
    }
    if (start < 0) {
        PyErr_SetString(PyExc_ValueError, "a read begins before its bytes");
        return NULL;
    }
    if (start > total || total - start < HEADER_SIZE || size < 1)
        Py_RETURN_NONE;
    const unsigned char *at = (const unsigned char *)PyBytes_AsString(data) + start;
    Run run = {.first = at, .size = size, .length = number16(at + LENGTH_AT), .alike = (total - start) / size,
               .seq = number64(at + FIXED_SIZE), .flags = at[FLAGS_AT], .each = at[COUNT_AT]};
    if (run.seq != expected || run.length > size || run.length > total - start || memcmp(at, OPENING, sizeof OPENING) ||
        !is_equal(cluster, at + CLUSTER_AT, CLUSTER_SIZE) || !is_equal(ring, at + RING_AT, RING_SIZE))
        Py_RETURN_NONE;
    Py_ssize_t place = number16(at + PLACE_AT);
    if (place >= PyTuple_Size(members))
        Py_RETURN_NONE;
    run.is_recovered = (run.flags & RECOVERED) != 0;
    if (run.is_recovered ? run.length < HEADER_SIZE + ORIGIN_SIZE : !has_sound_messages(&run))
        Py_RETURN_NONE;
    search(&run);
    return fields_of(&run, PyTuple_GetItem(members, place));
}
