/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autofused-gate --core PATH --door PATH --events PATH [--mode OCTAL] [--uids N,N] [--message-bytes N] [--memory-bytes N] [--requests N]
 *
 * Started by autofused, and again when it ends. Descriptor 3, where it is a pipe, is a lifeline: the process ends with it. The
 * file system is closed to it but for its sockets' directory (Landlock, where the kernel has it).
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/landlock.h>
#include <nanomsg/nn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/gate.h"

#define LIFELINE_FD   3
#define MAX_UIDS      4096u
#define BIND_TRIES    50u
#define BIND_PAUSE_US 20000u

/* ---- who may connect: the file's mode and access list, since nanomsg does not tell who a peer is ---- */

struct acl_entry {
        uint16_t tag, perm;
        uint32_t id;
};
enum { ACL_USER_OBJ = 1, ACL_USER = 2, ACL_GROUP_OBJ = 4, ACL_MASK = 16, ACL_OTHER = 32 };

/* The kernel's form of an access list: version 2, entries in the order of their tags. 0 or -errno. */
static int allow_uids(const char *path, const struct af_gate_config *c) {
        struct {
                uint32_t version;
                struct acl_entry entries[MAX_UIDS + 4];
        } acl = {.version = 2};
        const uint32_t none = UINT32_MAX;
        uint32_t n = 0;

        acl.entries[n++] = (struct acl_entry){ACL_USER_OBJ, 6, none};
        for (uint32_t i = 0; i < c->n_uids; i++)
                acl.entries[n++] = (struct acl_entry){ACL_USER, 6, c->uids[i]};
        acl.entries[n++] = (struct acl_entry){ACL_GROUP_OBJ, (uint16_t)(c->mode >> 3 & 7), none};
        acl.entries[n++] = (struct acl_entry){ACL_MASK, 6, none};
        acl.entries[n++] = (struct acl_entry){ACL_OTHER, (uint16_t)(c->mode & 7), none};
        return setxattr(path, "system.posix_acl_access", &acl, 4 + n * sizeof(acl.entries[0]), 0) < 0 ? -errno : 0;
}

int af_gate_bind(int socket, const char *path, const struct af_gate_config *config) {
        char address[NN_SOCKADDR_MAX + 1];
        int r = -EADDRINUSE;

        if (strlen(path) > AF_GATE_MAX_PATH)
                return -ENAMETOOLONG;
        snprintf(address, sizeof(address), "ipc://%s", path);
        /* A process before this one may be gone in a moment. */
        for (unsigned i = 0; r == -EADDRINUSE && i < BIND_TRIES; i++) {
                if (i)
                        usleep(BIND_PAUSE_US);
                r = nn_bind(socket, address);
                r = r < 0 ? -nn_errno() : r;
        }
        if (r < 0)
                return r;
        if (chmod(path, config->mode & 0666) < 0)
                return -errno;
        if (config->n_uids) {
                int e = allow_uids(path, config);

                if (e < 0)
                        af_log(AF_LOG_WARNING, "gate: %s: the users of allow_uid cannot be admitted here (%s); mode %o alone decides", path,
                               strerror(-e), config->mode);
        }
        return r;
}

/* ---- arguments ---- */

static int read_uids(const char *value, struct af_gate_config *c) {
        static uint32_t uids[MAX_UIDS];

        c->uids = uids;
        while (*value && c->n_uids < MAX_UIDS) {
                char *end;

                uids[c->n_uids++] = (uint32_t)strtoul(value, &end, 10);
                if (end == value || (*end && *end != ','))
                        return -EINVAL;
                value = *end ? end + 1 : end;
        }
        if (*value)
                af_log(AF_LOG_WARNING, "gate: only the first %u users of allow_uid may connect", MAX_UIDS);
        return 0;
}

static int read_arguments(int argc, char **argv, struct af_gate_config *c) {
        for (int i = 1; i + 1 < argc; i += 2) {
                const char *name = argv[i], *value = argv[i + 1];

                if (strcmp(name, "--core") == 0)
                        c->core = value;
                else if (strcmp(name, "--door") == 0)
                        c->door = value;
                else if (strcmp(name, "--events") == 0)
                        c->events = value;
                else if (strcmp(name, "--mode") == 0)
                        c->mode = (unsigned)strtoul(value, NULL, 8);
                else if (strcmp(name, "--message-bytes") == 0)
                        c->max_message_bytes = strtoull(value, NULL, 10);
                else if (strcmp(name, "--memory-bytes") == 0)
                        c->memory_bytes = strtoull(value, NULL, 10);
                else if (strcmp(name, "--requests") == 0)
                        c->max_requests = (uint32_t)strtoul(value, NULL, 10);
                else if (strcmp(name, "--debug") == 0)
                        af_log_set_level(AF_LOG_DEBUG);
                else if (strcmp(name, "--uids") != 0 || read_uids(value, c))
                        return -EINVAL;
        }
        return argc % 2 == 1 && c->core && c->door && c->events ? 0 : -EINVAL;
}

/* ---- the sandbox ---- */

static void set_limits(const struct af_gate_config *c) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        if (c->memory_bytes)
                (void)setrlimit(RLIMIT_AS, &(struct rlimit){c->memory_bytes, c->memory_bytes});
#endif
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/*
 * No file is opened or run, and none made or removed but the sockets in their directory. Connecting to a socket is not among what this
 * forbids. Before any other thread is there: it covers the thread that calls, and those that it makes.
 */
static void close_file_system(const char *socket) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        struct landlock_ruleset_attr attr = {.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
        struct landlock_path_beneath_attr rule = {.allowed_access = LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_REMOVE_FILE};
        int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
        char *dir = strdup(socket);

        if (fd >= 0 && dir) {
                rule.parent_fd = open(dirname(dir), O_PATH | O_CLOEXEC);
                if (rule.parent_fd < 0 || syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0 ||
                    syscall(SYS_landlock_restrict_self, fd, 0) < 0)
                        af_log(AF_LOG_DEBUG, "gate: no Landlock: %s", strerror(errno));
                if (rule.parent_fd >= 0)
                        close(rule.parent_fd);
        }
        if (fd >= 0)
                close(fd);
        free(dir);
#endif
}

/* ---- life ---- */

static void on_lifeline(uv_poll_t *poll, int status, int events) {
        _exit(0);
}

static void watch_lifeline(uv_loop_t *loop) {
        static uv_poll_t poll;
        struct stat st;

        if (fstat(LIFELINE_FD, &st) < 0 || !S_ISFIFO(st.st_mode) || uv_poll_init(loop, &poll, LIFELINE_FD) < 0)
                return;
        uv_poll_start(&poll, UV_READABLE | UV_DISCONNECT, on_lifeline);
}

static int complain(const char *path, int r) {
        af_log(AF_LOG_ERROR, "gate: %s: %s", path, r == -EADDRINUSE ? "another process answers there" : strerror(-r));
        return 1;
}

int main(int argc, char **argv) {
        static struct af_gate_config config = {.mode = 0600, .max_message_bytes = 16u << 20, .memory_bytes = 1u << 30, .max_requests = 256};
        struct af_gate_door *door;
        struct af_gate_events *events;
        uv_loop_t loop;
        int r;

        if (read_arguments(argc, argv, &config)) {
                fputs("autofused-gate is started by autofused (its setting: gate)\n", stderr);
                return 2;
        }
        signal(SIGPIPE, SIG_IGN);
        umask(077);
        set_limits(&config);
        close_file_system(config.door);
        uv_loop_init(&loop);
        watch_lifeline(&loop);
        r = af_gate_door_open(&loop, &config, &door);
        if (r < 0)
                return complain(config.door, r);
        r = af_gate_events_open(&loop, &config, &events);
        if (r < 0)
                return complain(config.events, r);
        uv_run(&loop, UV_RUN_DEFAULT);
        return 1;
}
