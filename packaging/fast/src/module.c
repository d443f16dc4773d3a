/* The module ordercast_fast: the compiled kernel of Ordercast. */

#include "kernel.h"

#define INTERFACE 3 /* ordercast/model/kernel.py wants the same */

int has_arguments(const char *name, Py_ssize_t given, Py_ssize_t wanted) {
    if (given == wanted)
        return 1;
    PyErr_Format(PyExc_TypeError, "%s takes %zd arguments, not %zd", name, wanted, given);
    return 0;
}

static PyMethodDef FUNCTIONS[] = {
    {"read_run", (PyCFunction)(void (*)(void))read_run, METH_FASTCALL, "Read data packets that are alike."},
    {"gather", (PyCFunction)(void (*)(void))gather, METH_FASTCALL, "Put parts of messages together."},
    {"lay", (PyCFunction)(void (*)(void))lay, METH_FASTCALL, "Lay packets that are alike one behind the other."},
    {"stamp", (PyCFunction)(void (*)(void))stamp, METH_FASTCALL, "Put stamps before messages."},
    {"cut", (PyCFunction)(void (*)(void))cut, METH_FASTCALL, "Take the first bytes off messages."},
    {"look", (PyCFunction)(void (*)(void))look, METH_FASTCALL, "Return sizes, digests and first bytes of messages."},
    {"in_a_row", (PyCFunction)(void (*)(void))in_a_row, METH_FASTCALL, "Tell whether sealed packets are in a row."},
    {NULL, NULL, 0, NULL},
};

/* What is known here of packets: a test compares it with ordercast/wire/header.py. */
static PyObject *layout(void) {
    return Py_BuildValue("(y#iiiiiiiiii(iiii)(iii))", (const char *)OPENING, (Py_ssize_t)sizeof OPENING, RING_AT, RING_SIZE,
                         FLAGS_AT, FIXED_SIZE, HEADER_SIZE, ORIGIN_SIZE, DESCRIPTOR_SIZE, SERVICE_MAX, SHORT_BLOCK,
                         LONE_BYTE, SAFE, RECOVERED, EXTENDED, PART_SHIFT, PART_FIRST, PART_MIDDLE, PART_LAST);
}

static int fill(PyObject *module) {
    PyObject *known = layout();
    int failed = known == NULL || PyModule_AddObjectRef(module, "LAYOUT", known) < 0;
    Py_XDECREF(known);
    return failed || add_seal(module) < 0 ? -1 : PyModule_AddIntConstant(module, "INTERFACE", INTERFACE);
}

static PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, fill}, {0, NULL}};

static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT,
    .m_name = "ordercast_fast",
    .m_doc = "The compiled kernel of Ordercast.",
    .m_methods = FUNCTIONS,
    .m_slots = SLOTS,
};

PyMODINIT_FUNC PyInit_ordercast_fast(void) { return PyModuleDef_Init(&MODULE); }
