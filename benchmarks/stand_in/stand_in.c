/* A stand-in for the CLI that writes as fast as pipes allow.
 *
 * Writes lines of the stock CLI (from frames.txt), as many as the prompt asks for:
 *
 *     bench KIND COUNT SIZE WINDOW
 *
 * KIND is partial, assistant, permission, hook, tool, mixed (those three in turn), or backlog: COUNT
 * messages, then a permission request. SIZE is the length of each text, WINDOW how many requests may
 * be open at once. Exits with status 3 after a wrong answer.
 *
 * Two further kinds write partial messages one at a time, WINDOW microseconds apart: trickle, and
 * stamped, whose texts are the time of writing in nanoseconds.
 * stand_in.py writes the same bytes, for machines without a compiler.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef FRAMES
#define FRAMES "frames.txt"
#endif

enum { FULL = 256 * 1024, CHUNK = 1024 * 1024 };

typedef struct { char *data; size_t start, end, room; } Buffer;
typedef struct { char name[24]; char *text; } Frame;

static Buffer out, in;
static Frame frames[64];
static size_t frame_count;

static char session[64] = "00000000-0000-4000-8000-0000000000aa";
static char prompt_uuid[64], request_id[128], hook[64], server[64], *text, *named, *listed;
static unsigned long uuids, number;
static int reports_states, replays, has_server, is_ready, must_run, at_end;

static struct { char kind[16]; long count, size, window, sent, answered; int running; } job;
static long long next_at; /* When the next message of a trickle is due, in nanoseconds. */

enum { PERMISSION, HOOK, TOOL, REQUESTS };
static const char *const requests[] = {"permission", "hook", "tool"};
static long open_requests[REQUESTS];

/* Buffers */

static void reserve(Buffer *to, size_t size) {
    if (to->start > 0 && to->start == to->end) to->start = to->end = 0;
    if (to->room - to->end >= size) return;
    memmove(to->data, to->data + to->start, to->end - to->start);
    to->end -= to->start;
    to->start = 0;
    if (to->room - to->end >= size) return;
    to->room = (to->end + size) * 2;
    to->data = realloc(to->data, to->room);
    if (!to->data) exit(4);
}

static void put(const char *data, size_t size) {
    reserve(&out, size);
    memcpy(out.data + out.end, data, size);
    out.end += size;
}

static void put_text(const char *value) { put(value, strlen(value)); }

static void put_number(unsigned long value) {
    char digits[24];
    put(digits, (size_t)snprintf(digits, sizeof digits, "%lu", value));
}

static void put_uuid(unsigned long value) {
    char made[] = "00000000-0000-4000-8000-000000000000";
    for (char *at = made + sizeof made - 2; value; value >>= 4) *at-- = "0123456789abcdef"[value & 15];
    put(made, sizeof made - 1);
}

/* Frames */

static void load_frames(void) {
    FILE *file = fopen(FRAMES, "r");
    char *line = NULL;
    size_t room = 0;
    if (!file) { perror(FRAMES); exit(4); }
    for (ssize_t size; (size = getline(&line, &room, file)) > 0;) {
        line[size - 1] = 0;
        char *space = strchr(line, ' ');
        *space = 0;
        snprintf(frames[frame_count].name, sizeof frames->name, "%s", line);
        frames[frame_count++].text = strdup(space + 1);
    }
    fclose(file);
    free(line);
}

static char *frame(const char *name) {
    for (size_t each = 0; each < frame_count; each++)
        if (!strcmp(frames[each].name, name)) return frames[each].text;
    exit(4);
}

static void fill(const char *template) {
    for (const char *at; (at = strchr(template, '@')); template = at + 2) {
        put(template, (size_t)(at - template));
        switch (at[1]) {
            case 'U': put_uuid(++uuids); break;
            case 'S': put_text(session); break;
            case 'I': put_number(number); break;
            case 'X': put_text(text); break;
            case 'P': put_text(prompt_uuid); break;
            case 'H': put_text(hook); break;
            case 'M': put_text(server); break;
            case 'R': put_text(request_id); break;
            case 'N': if (*prompt_uuid) fill(named); break;
            case 'V': if (has_server) fill(listed); break;
            default: put(at, 2);
        }
    }
    put_text(template);
}

static void write_frame(const char *name) { fill(frame(name)); put("\n", 1); }

/* One turn */

static int is_kind(const char *kind) { return !strcmp(job.kind, kind); }

static int is_trickle(void) { return is_kind("trickle") || is_kind("stamped"); }

static int is_partial(void) { return is_kind("partial") || is_trickle(); }

static long long now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void begin(void) {
    must_run = 0;
    job.running = 1;
    job.sent = job.answered = 0;
    number = 1;
    free(text);
    text = malloc((size_t)job.size + 1);
    memset(text, 'x', (size_t)job.size);
    text[job.size] = 0;
    if (*prompt_uuid) { write_frame("queued"); write_frame("started"); }
    if (reports_states) write_frame("running");
    write_frame("init");
    if (replays && *prompt_uuid) write_frame("replay");
    if (is_partial()) { write_frame("message_start"); write_frame("block_start"); }
    next_at = now() + job.window * 1000LL;
}

static void end(void) {
    char done[64];
    if (is_partial()) {
        write_frame("assistant"); write_frame("block_stop"); write_frame("message_delta"); write_frame("message_stop");
    }
    snprintf(done, sizeof done, "done %ld", job.count);
    char *kept = text;
    text = done;
    write_frame("result");
    text = kept;
    if (*prompt_uuid) write_frame("completed");
    if (reports_states) write_frame("idle");
    job.running = 0;
}

static int is_asking(void) {
    return is_kind("permission") || is_kind("hook") || is_kind("tool") || is_kind("mixed");
}

static void ask(int request) { open_requests[request]++; write_frame(requests[request]); }

static void ask_next(void) {
    int which = (int)(job.sent % REQUESTS);
    if (!is_kind("mixed"))
        for (which = PERMISSION; !is_kind(requests[which]);) which++;
    ask(which);
}

/* Write the next message of a trickle if it is due. One that is late delays the others, so that
 * each of them is one wake-up of the host. */
static void trickle(void) {
    char stamp[24], *kept = text;
    long long at = now();
    if (job.sent == job.count || at < next_at) return;
    job.sent++;
    next_at = at + job.window * 1000LL;
    snprintf(stamp, sizeof stamp, "%lld", at);
    if (is_kind("stamped")) text = stamp;
    write_frame("partial");
    text = kept;
}

/* Write as much as possible now. */
static void advance(void) {
    if (must_run && is_ready) begin();
    if (!job.running) return;
    if (is_trickle()) {
        if (out.end == out.start) trickle();
        if (job.sent == job.count) end();
        return;
    }
    int asks = is_asking(), many = is_kind("partial");
    const char *template = frame(many ? "partial" : "assistant");
    while (job.sent < job.count && out.end - out.start < FULL) {
        if (asks && job.sent - job.answered >= job.window) return;
        job.sent++;
        if (!many) number = (unsigned long)job.sent;
        if (asks) ask_next();
        else { fill(template); put("\n", 1); }
    }
    if (job.sent < job.count) return;
    if (is_kind("backlog") && job.sent == job.count) { job.sent++; ask(PERMISSION); }
    if (asks ? job.answered == job.count : job.answered == job.sent - job.count) end();
}

/* Lines from the host, matched by substrings, which is unambiguous for these hosts. */

static int value_of(const char *line, const char *key, char *into, size_t room) {
    const char *at = strstr(line, key);
    *into = 0;
    if (!at) return 0;
    at += strlen(key);
    at += strspn(at, " :[");
    if (*at != '"') return 0;
    size_t size = strcspn(++at, "\"");
    snprintf(into, room, "%.*s", (int)size, at);
    return 1;
}

static void refuse(const char *why, const char *line) {
    fprintf(stderr, "stand-in: %s: %.300s\n", why, line);
    exit(3);
}

static void on_answer(const char *line) {
    if (strstr(line, "\"error\"")) refuse("an error for an answer", line);
    if (has_server && !is_ready) {
        static int step;
        if (step == 0) write_frame("mcp_initialized");
        if (step == 1) write_frame("mcp_list");
        is_ready = ++step == 3;
        return;
    }
    /* The answer to a hook is empty. */
    int answered = strstr(line, "\"allow\"") ? PERMISSION : strstr(line, "\"content\"") ? TOOL : HOOK;
    if (!open_requests[answered]) refuse("no request is open for this answer", line);
    open_requests[answered]--;
    job.answered++;
}

static void on_request(const char *line) {
    char subtype[32], given[64];
    value_of(line, "\"request_id\"", request_id, sizeof request_id);
    value_of(line, "\"subtype\"", subtype, sizeof subtype);
    if (strcmp(subtype, "initialize")) { write_frame("success"); return; }
    value_of(line, "\"hookCallbackIds\"", hook, sizeof hook);
    if (value_of(line, "\"sdkMcpServers\"", given, sizeof given)) {
        has_server = 1;
        snprintf(server, sizeof server, "%s", given);
    }
    /* With a manifest the CLI needs no MCP handshake. */
    is_ready = !has_server || strstr(line, "\"sdkMcpServerManifests\"") != NULL;
    if (!is_ready) write_frame("mcp_initialize");
    write_frame("initialize");
}

static void on_line(const char *line) {
    if (strstr(line, "\"control_response\"")) { on_answer(line); return; }
    if (strstr(line, "\"control_request\"")) { on_request(line); return; }
    const char *order = strstr(line, "bench ");
    if (!order) return;
    value_of(line, "\"uuid\"", prompt_uuid, sizeof prompt_uuid);
    if (sscanf(order, "bench %15s %ld %ld %ld", job.kind, &job.count, &job.size, &job.window) != 4)
        refuse("not an order", line);
    must_run = 1;
}

/* The pipes */

static void receive(void) {
    reserve(&in, CHUNK + 1);
    ssize_t size = read(0, in.data + in.end, CHUNK);
    if (size <= 0) { at_end = size == 0 || errno != EINTR; return; }
    size_t from = in.end;
    in.end += (size_t)size;
    for (char *newline; (newline = memchr(in.data + from, '\n', in.end - from));) {
        *newline = 0;
        on_line(in.data + in.start);
        from = in.start = (size_t)(newline - in.data) + 1;
    }
}

static void flush(void) {
    ssize_t size = write(1, out.data + out.start, out.end - out.start);
    if (size < 0 && errno != EAGAIN && errno != EINTR) exit(0);
    if (size > 0) out.start += (size_t)size;
}

int main(int argc, char **argv) {
    for (int each = 1; each < argc; each++) {
        if (!strcmp(argv[each], "-v") || !strcmp(argv[each], "--version")) return !puts("2.1.325 (Claude Code)");
        if (!strcmp(argv[each], "--replay-user-messages")) replays = 1;
        sscanf(argv[each], "--session-id=%63s", session);
        if (strstr(argv[each], "mcpServers") && strstr(argv[each], "\"sdk\"")) {
            has_server = 1;
            snprintf(server, sizeof server, "bench");
        }
    }
    reports_states = getenv("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") || getenv("CLAUDE_CODE_SDK_READS_SESSION_STATE");
    load_frames();
    named = frame("named");
    listed = frame("listed");
    fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_NONBLOCK);
    for (;;) {
        advance();
        if (out.end > out.start) flush();
        if (at_end && out.end == out.start) return 0;
        int waits = job.running && is_trickle();
        int has_more = out.end > out.start || (job.running && !waits && !is_asking() && job.sent < job.count);
        long long left = waits ? next_at - now() : 0;
        if (left < 0) left = 0; /* ppoll refuses a pause that is already over. */
        struct timespec due = {left / 1000000000, left % 1000000000};
        struct pollfd ends[] = {{at_end ? -1 : 0, POLLIN, 0}, {has_more ? 1 : -1, POLLOUT, 0}};
        if (ppoll(ends, 2, waits ? &due : NULL, NULL) < 0 && errno != EINTR) return 4;
        if (ends[0].revents) receive();
    }
}
