/* A libnvidia-ml.so.1 without hardware. Every answer stands in a text file that is read at each call:

       driver 570.86.10
       count 2
       0.uuid GPU-aaaa          a key and its value
       1.power error 15         what is asked of device 1 is answered with this NVML error
       1.lost 15                everything that is asked of device 1 is
       1.hang 1                 ... or is not answered for as long as the line stands here
       0/1.uuid MIG-bbbb        the second MIG instance of device 0
       0.generation 1           device 0 was reset: handles from before are worth nothing

   What the file does not name is "not supported" (3), as on a real device. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOT_SUPPORTED 3
#define INVALID 2
#define NOT_FOUND 6
#define SMALL 7
#define TIMEOUT 10
#define MOST_DEVICES 64

typedef uintptr_t handle; /* by bytes: 1 + index, 1 + number of the MIG instance, generation */
typedef unsigned long long u64;

static char path[4096];
static unsigned told_xids[MOST_DEVICES];

void fake_nvml_state(const char *file) {
    snprintf(path, sizeof path, "%s", file);
    memset(told_xids, 0, sizeof told_xids);
}

static int find(const char *key, char *value, size_t size) {
    const char *file = path[0] ? path : getenv("FAKE_NVML_STATE");
    FILE *in = file ? fopen(file, "r") : NULL;
    char line[1024];
    int code = NOT_SUPPORTED;
    size_t length = strlen(key);
    while (in && fgets(line, sizeof line, in)) {
        if (strncmp(line, key, length) == 0 && line[length] == ' ') {
            line[strcspn(line, "\n")] = 0;
            snprintf(value, size, "%s", line + length + 1);
            code = sscanf(value, "error %d", &code) == 1 ? code : 0;
            break;
        }
    }
    if (in) fclose(in);
    return code;
}

static void name_of(handle device, char *name, size_t size) {
    unsigned index = (device & 0xff) - 1, instance = (device >> 8) & 0xff;
    if (instance) snprintf(name, size, "%u/%u", index, instance - 1);
    else snprintf(name, size, "%u", index);
}

static handle generation(unsigned index) {
    char key[64], found[64];
    snprintf(key, sizeof key, "%u.generation", index);
    return find(key, found, sizeof found) == 0 ? (handle)atoi(found) << 16 : 0;
}

static int text(handle device, const char *what, char *value, size_t size) {
    char name[32], key[128], flag[64];
    int code;
    name_of(device, name, sizeof name);
    snprintf(key, sizeof key, "%s.hang", name);
    while (find(key, flag, sizeof flag) == 0) usleep(5000);
    snprintf(key, sizeof key, "%s.lost", name);
    if (find(key, flag, sizeof flag) == 0) return atoi(flag);
    if (device >> 16 != generation((device & 0xff) - 1) >> 16) return INVALID;
    snprintf(key, sizeof key, "%s.%s", name, what);
    code = find(key, value, size);
    return code;
}

static int number(handle device, const char *what, u64 *value) {
    char found[256];
    int code = text(device, what, found, sizeof found);
    if (code == 0) *value = strtoull(found, NULL, 10);
    return code;
}

static int word(handle device, const char *what, unsigned *value) {
    u64 found = 0;
    int code = number(device, what, &found);
    if (code == 0) *value = (unsigned)found;
    return code;
}

/* ---------------------------------------------------------------------------------------- the library */

int nvmlInitWithFlags(unsigned flags) {
    char found[64];
    int code = find("init", found, sizeof found);
    (void)flags;
    return code == NOT_SUPPORTED ? 0 : code;
}

int nvmlShutdown(void) { return 0; }

const char *nvmlErrorString(int code) {
    static char said[64];
    snprintf(said, sizeof said, "fake error %d", code);
    return said;
}

int nvmlSystemGetDriverVersion(char *version, unsigned size) { return find("driver", version, size); }

int nvmlDeviceGetCount_v2(unsigned *count) {
    char found[64];
    int code = find("count", found, sizeof found);
    *count = code == 0 ? (unsigned)atoi(found) : 0;
    return code == NOT_SUPPORTED ? 0 : code;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle *device) {
    char found[64], key[64];
    int code;
    snprintf(key, sizeof key, "%u.handle", index);
    code = find(key, found, sizeof found);
    *device = (index + 1) | generation(index);
    return code == NOT_SUPPORTED ? 0 : code;
}

int nvmlDeviceGetMigDeviceHandleByIndex(handle device, unsigned instance, handle *mig) {
    char found[128];
    *mig = device | ((handle)(instance + 1) << 8);
    return text(*mig, "uuid", found, sizeof found) == 0 ? 0 : NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, handle *device) {
    char found[128];
    unsigned count, index, instance;
    nvmlDeviceGetCount_v2(&count);
    for (index = 0; index < count; index++)
        for (instance = 0; instance <= 7; instance++) {
            int code;
            *device = (index + 1) | ((handle)instance << 8) | generation(index);
            code = text(*device, "uuid", found, sizeof found);
            if (code == 0 && strcmp(found, uuid) == 0) return 0;
        }
    return NOT_FOUND;
}

int nvmlDeviceGetUUID(handle device, char *uuid, unsigned size) { return text(device, "uuid", uuid, size); }
int nvmlDeviceGetName(handle device, char *name, unsigned size) { return text(device, "name", name, size); }

typedef struct {
    char legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
} pci_info;

int nvmlDeviceGetPciInfo_v3(handle device, pci_info *pci) {
    memset(pci, 0, sizeof *pci);
    return text(device, "pci", pci->bus_id, sizeof pci->bus_id);
}

int nvmlDeviceGetMigMode(handle device, unsigned *current, unsigned *pending) {
    int code = word(device, "mig", current);
    *pending = *current;
    return code;
}

int nvmlDeviceGetMaxMigDeviceCount(handle device, unsigned *count) {
    (void)device;
    *count = 7;
    return 0;
}

/* --------------------------------------------------------------------------------------- measurements */

typedef struct { unsigned gpu, memory; } utilization;
typedef struct { u64 total, free, used; } memory_v1;
typedef struct { unsigned version; u64 total, reserved, free, used; } memory_v2;

int nvmlDeviceGetUtilizationRates(handle device, utilization *found) {
    int code = word(device, "utilization.gpu", &found->gpu);
    return code ? code : word(device, "utilization.memory", &found->memory);
}

int nvmlDeviceGetMemoryInfo(handle device, memory_v1 *found) {
    int code = number(device, "memory.total", &found->total);
    found->free = 0;
    return code ? code : number(device, "memory.used", &found->used);
}

int nvmlDeviceGetMemoryInfo_v2(handle device, memory_v2 *found) {
    char old[64];
    int code = find("memory_v2", old, sizeof old);
    if (code != NOT_SUPPORTED) return code;
    code = number(device, "memory.total", &found->total);
    found->free = found->reserved = 0;
    number(device, "memory.reserved", &found->reserved);
    return code ? code : number(device, "memory.used", &found->used);
}

int nvmlDeviceGetPowerUsage(handle device, unsigned *milliwatts) { return word(device, "power", milliwatts); }
int nvmlDeviceGetEnforcedPowerLimit(handle device, unsigned *limit) { return word(device, "power.limit", limit); }
int nvmlDeviceGetTotalEnergyConsumption(handle device, u64 *millijoules) { return number(device, "energy", millijoules); }

int nvmlDeviceGetTemperature(handle device, unsigned sensor, unsigned *celsius) {
    return sensor ? INVALID : word(device, "temperature", celsius);
}

int nvmlDeviceGetClockInfo(handle device, unsigned clock, unsigned *megahertz) {
    return clock == 1 ? word(device, "clock.sm", megahertz)
         : clock == 2 ? word(device, "clock.memory", megahertz) : INVALID;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(handle device, u64 *bits) { return number(device, "throttle", bits); }

int nvmlDeviceGetCurrentClocksEventReasons(handle device, u64 *bits) {
    char old[64];
    int code = find("event_reasons", old, sizeof old); /* a driver before 535 has only the older name */
    return code != NOT_SUPPORTED ? code : number(device, "throttle", bits);
}

int nvmlDeviceGetTotalEccErrors(handle device, unsigned error, unsigned counter, u64 *count) {
    char key[64];
    snprintf(key, sizeof key, "ecc.%s.%s", error ? "uncorrected" : "corrected", counter ? "aggregate" : "volatile");
    return number(device, key, count);
}

typedef struct {
    uint32_t field, scope;
    int64_t timestamp, latency;
    unsigned type, code;
    u64 value;
} field_value;

int nvmlDeviceGetFieldValues(handle device, int count, field_value *values) {
    char key[64];
    u64 flag;
    int i, code = word(device, "fields", (unsigned *)&flag); /* `0.fields error 15` refuses them all */
    if (code != 0 && code != NOT_SUPPORTED) return code;
    for (i = 0; i < count; i++) {
        unsigned type = 3;
        snprintf(key, sizeof key, "field.%u.%u", values[i].field, values[i].scope);
        values[i].code = number(device, key, &values[i].value);
        snprintf(key, sizeof key, "field.%u.%u.type", values[i].field, values[i].scope);
        word(device, key, &type);
        values[i].type = type;
    }
    return 0;
}

/* --------------------------------------------------------------------------------------------- events */

typedef struct { handle device; u64 type, data; unsigned gpu_instance, compute_instance; } event_data;
static handle watched[MOST_DEVICES];
static unsigned sets;

int nvmlEventSetCreate(uintptr_t *set) {
    if (sets + 1 >= MOST_DEVICES) sets = 0;
    *set = ++sets;
    return 0;
}

int nvmlEventSetFree(uintptr_t set) {
    watched[set] = 0;
    return 0;
}

int nvmlDeviceGetSupportedEventTypes(handle device, u64 *types) {
    char found[256];
    int code = text(device, "xid", found, sizeof found);
    *types = code == 0 ? 8 : 0;
    return code;
}

int nvmlDeviceRegisterEvents(handle device, u64 types, uintptr_t set) {
    (void)types;
    watched[set] = device;
    return 0;
}

int nvmlEventSetWait_v2(uintptr_t set, event_data *event, unsigned milliseconds) {
    char found[256] = "", key[64], *next, *save = NULL;
    unsigned seen = 0, index = (watched[set] & 0xff) - 1;
    (void)milliseconds;
    snprintf(key, sizeof key, "%u.xid", index); /* the codes so far; a lost device has told of them before */
    if (find(key, found, sizeof found) != 0) return TIMEOUT;
    for (next = strtok_r(found, " ", &save); next; next = strtok_r(NULL, " ", &save))
        if (strcmp(next, "none") && seen++ == told_xids[index]) {
            told_xids[index]++;
            memset(event, 0, sizeof *event);
            event->device = watched[set];
            event->type = 8;
            event->data = strtoull(next, NULL, 10);
            return 0;
        }
    return TIMEOUT;
}

/* ------------------------------------------------------------------------------------------ processes */

typedef struct { unsigned pid; u64 bytes; unsigned gpu_instance, compute_instance; } process;

/* `0.processes 4711:1024 4712:2048`, or `none`; a size of `-` is one that the driver does not tell. */
int nvmlDeviceGetComputeRunningProcesses_v3(handle device, unsigned *count, process *list) {
    char found[1024], *next, *save = NULL;
    unsigned room = *count, n = 0;
    int code = text(device, "processes", found, sizeof found);
    if (code) return code;
    for (next = strtok_r(found, " ", &save); next; next = strtok_r(NULL, " ", &save)) {
        char *colon = strchr(next, ':');
        if (!colon) continue;
        if (list && n < room) {
            memset(&list[n], 0, sizeof *list);
            list[n].pid = (unsigned)atoi(next);
            list[n].bytes = colon[1] == '-' ? ~0ULL : strtoull(colon + 1, NULL, 10);
        }
        n++;
    }
    *count = n;
    return n > room ? SMALL : 0;
}
