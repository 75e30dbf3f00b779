// SPDX-License-Identifier: Apache-2.0
//
// The public interface in eight threads, each with objects of its own: half of them on the
// host, half on the first OpenCL device if there is one. Every thread has a program of its
// own, so that whatever threads share by mistake shows in what is computed; `make
// SAN=thread` shows the rest. This program is its own worker.

#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "forewarp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <CL/cl.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 2, N = 1000 };
static const char self[] = "/proc/self/exe";

// One of the users. cmocka's assertions are for the thread that runs the test, so a user
// only notes what went wrong.
typedef struct {
    int number;
    bool opencl, searches;
    pthread_barrier_t *start; // so that all do the same at a time
    char program[96], store[96], wrong[512];
    float x[N], out[N];
} User;

typedef struct {
    cl_context context;
    cl_command_queue queue;
    cl_mem x, out;
} Guest;

static bool give_up(User *user, const char *what, const char *message)
{
    snprintf(user->wrong, sizeof user->wrong, "%s: %s", what, message ? message : "");
    return false;
}

// The queue -------------------------------------------------------------------------------

// Called once before there are threads: of several first calls of PoCL 3.1 at a time all
// but one find no device.
static bool find_opencl(cl_device_id *device)
{
    cl_platform_id platform;
    return clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS &&
           clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, device, NULL) == CL_SUCCESS;
}

static bool open_guest(Guest *guest)
{
    cl_device_id device;
    cl_int error;
    *guest = (Guest){0};
    if (!find_opencl(&device))
        return false;
    guest->context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    guest->queue = clCreateCommandQueue(guest->context, device, 0, &error);
    guest->x =
        clCreateBuffer(guest->context, CL_MEM_READ_ONLY, N * sizeof(float), NULL, &error);
    guest->out =
        clCreateBuffer(guest->context, CL_MEM_READ_WRITE, N * sizeof(float), NULL, &error);
    return error == CL_SUCCESS;
}

static void close_guest(Guest *guest)
{
    clReleaseMemObject(guest->x);
    clReleaseMemObject(guest->out);
    clReleaseCommandQueue(guest->queue);
    clReleaseContext(guest->context);
}

static bool execute_opencl(User *user, fw_executable *executable, Guest *guest,
                           char **message)
{
    void *const buffer[] = {guest->x, guest->out};
    clEnqueueWriteBuffer(guest->queue, guest->x, CL_TRUE, 0, sizeof user->x, user->x, 0,
                         NULL, NULL);
    if (!fw_execute(executable, guest->queue, buffer, 2, message))
        return false;
    return clEnqueueReadBuffer(guest->queue, guest->out, CL_TRUE, 0, sizeof user->out,
                               user->out, 0, NULL, NULL) == CL_SUCCESS;
}

// A user ----------------------------------------------------------------------------------

static bool compare(User *user)
{
    for (int i = 0; i < N; i++)
        if (user->out[i] != (float)user->number * user->x[i])
            return give_up(user, "execute", "a wrong result");
    return true;
}

static bool run(User *user, const fw_plan *plan, Guest *guest)
{
    char *message = NULL;
    void *const buffer[] = {user->x, user->out};
    memset(user->out, 0, sizeof user->out);
    fw_executable *executable = fw_load(plan, guest->queue, &message);
    bool ok =
        executable && (user->opencl ? execute_opencl(user, executable, guest, &message)
                                    : fw_execute(executable, NULL, buffer, 2, &message));
    ok = ok ? compare(user) : give_up(user, "load and execute", message);
    fw_free_text(message);
    fw_executable_free(executable);
    return ok;
}

// Who searches finds wisdom in later rounds.
static bool plan_and_run(User *user, const fw_problem *problem, const fw_device *device,
                         Guest *guest)
{
    const fw_rigor rigor[] = {FW_MEASURE, FW_ESTIMATE};
    bool ok = true;
    for (int i = user->searches ? 0 : 1; ok && i < 2; i++) {
        char *message = NULL;
        fw_plan_options options = {.rigor = rigor[i],
                                   .store = user->store,
                                   .worker = self,
                                   .models = "data/models",
                                   .budget_trials = 2};
        fw_plan *plan = fw_plan_make(problem, device, &options, &message);
        bool late = !plan && message && strstr(message, "timed-out"); // a busy machine
        ok = plan ? run(user, plan, guest) : late || give_up(user, "plan", message);
        fw_free_text(message);
        fw_plan_free(plan);
    }
    return ok;
}

// The other kinds of problems, as far as nothing is run.
static bool estimate(User *user, const char *path, const char *sizes,
                     const fw_device *device)
{
    char *message = NULL;
    fw_plan_options options = {.rigor = FW_ESTIMATE, .store = user->store};
    fw_problem *problem = fw_problem_load(path, sizes, &message);
    fw_plan *plan = problem ? fw_plan_make(problem, device, &options, &message) : NULL;
    bool ok = plan && fw_plan_source(plan)[0] ? true : give_up(user, path, message);
    fw_free_text(message);
    fw_plan_free(plan);
    fw_problem_free(problem);
    return ok;
}

static bool use(User *user)
{
    char *message = NULL;
    Guest guest = {0};
    fw_problem *problem = fw_problem_load(user->program, "N=1000", &message);
    if (user->opencl && !open_guest(&guest))
        return give_up(user, "OpenCL", NULL);
    fw_device *device =
        problem ? fw_device_adopt(user->opencl ? "opencl" : "host", guest.queue, &message)
                : NULL;
    bool ok = device ? plan_and_run(user, problem, device, &guest) &&
                           estimate(user, "examples/fusion/sscal.fws", "T=64", device) &&
                           estimate(user, "examples/jacobi2d.fw", "N=64,M=64", device)
                     : give_up(user, "open", message);
    if (ok && user->opencl)
        ok = estimate(user, "templates/transpose.json", "H=64,W=64", device);
    fw_free_text(message);
    fw_device_free(device);
    fw_problem_free(problem);
    if (user->opencl)
        close_guest(&guest);
    return ok;
}

static void *attend(void *argument)
{
    User *user = argument;
    pthread_barrier_wait(user->start);
    for (int i = 0; i < ROUNDS && use(user); i++)
        ;
    return NULL;
}

// All of them -----------------------------------------------------------------------------

static void prepare(User *user, int number, bool opencl, pthread_barrier_t *start,
                    const char *folder)
{
    *user = (User){.number = number, .opencl = opencl, .start = start};
    user->searches = !opencl || number == 3; // compilers of OpenCL are slow: one is enough
    snprintf(user->program, sizeof user->program, "%s/%d.fw", folder, number);
    snprintf(user->store, sizeof user->store, "%s/trials.db", folder);
    FILE *f = fopen(user->program, "w");
    assert_non_null(f);
    fprintf(f, "size N\ndef times(x: [N]float): [N]float = x |> map(\\v -> %d*v)\n",
            number);
    fclose(f);
    for (int i = 0; i < N; i++)
        user->x[i] = (float)i;
}

static void test_own_objects(void **state)
{
    (void)state;
    char folder[] = "/tmp/forewarp-test-XXXXXX", command[96];
    static User user[THREADS];
    pthread_t thread[THREADS];
    pthread_barrier_t start;
    assert_non_null(mkdtemp(folder));
    if (!getenv("FW_TEST_CACHE")) // of tools/check, for all tests
        setenv("XDG_CACHE_HOME", folder, 1);
    cl_device_id device;
    bool opencl = find_opencl(&device);
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        prepare(&user[i], 2 + i, opencl && i % 2, &start, folder);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, attend, &user[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&start);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    for (int i = 0; i < THREADS; i++)
        if (user[i].wrong[0])
            fail_msg("thread %d: %s", i, user[i].wrong);
}

// What the sanitizer of threads does not see, a line each with its reason.
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:ld-linux\n"; // dlopen and dlclose hold a lock inside the loader
}

int main(int argc, char **argv)
{
    int status;
    if (fw_worker(argc, argv, &status))
        return status;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own_objects)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
