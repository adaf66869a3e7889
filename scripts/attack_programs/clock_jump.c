// SPDX-License-Identifier: Apache-2.0
// Moves the wall clock by CLOCK_JUMP_S as soon as the file CLOCK_JUMPED is there; the monotonic one goes on.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const char *file;
static long seconds;
/* Once: the environment may be changed while another thread reads it. */
__attribute__((constructor)) static void begin(void) {
    file = getenv("CLOCK_JUMPED") ? strdup(getenv("CLOCK_JUMPED")) : 0;
    seconds = getenv("CLOCK_JUMP_S") ? atol(getenv("CLOCK_JUMP_S")) : 0;
}
static long offset(void) {
    int before = errno;
    long moved = file && access(file, F_OK) == 0 ? seconds : 0;
    errno = before;
    return moved;
}
static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = next("clock_gettime");
    int failed = real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
    return failed;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    now->tv_sec = at.tv_sec;
    now->tv_usec = at.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *now) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    if (now) *now = at.tv_sec;
    return at.tv_sec;
}
/* What waits for an instant of the wall clock was told it by the moved clock; an uptime is no such instant. */
static struct timespec real_time(const struct timespec *until) {
    struct timespec moved = *until;
    if (moved.tv_sec > 1000000000) moved.tv_sec -= offset();
    return moved;
}
int sem_timedwait(sem_t *sem, const struct timespec *until) {
    static int (*real)(sem_t *, const struct timespec *);
    if (!real) real = next("sem_timedwait");
    struct timespec moved = real_time(until);
    return real(sem, &moved);
}
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    /* glibc has an older one of this name, for other structures. */
    if (!real) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real) real = next("pthread_cond_timedwait");
    struct timespec moved = real_time(until);
    return real(cond, mutex, &moved);
}
