// SPDX-License-Identifier: Apache-2.0
// What makes the bytes of a plan safe to walk. After this, every offset lies in
// its section, every index names a record, every binding lies in its storage
// and every step has a next one. It does not make the machine code safe.
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/checked.h"
#include "base/hash.h"
#include "runtime/plan.h"

// No machine has more; keeps sums of sizes below 2^63.
#define LARGEST_SIZE ((int64_t)1 << 56)
// Device memory is aligned to 64 bytes.
#define MOST_ALIGN_LOG2 6
_Static_assert(offsetof(pestle_plan_header_t, signature) ==
                   PESTLE_PLAN_CHECKED_FROM,
               "plan_format.h promises this offset");
_Static_assert(sizeof(pestle_plan_device_t) == 32, "a stable format");
_Static_assert(sizeof(pestle_plan_io_t) == 160, "a stable format");
_Static_assert(sizeof(pestle_plan_binding_t) == 24, "a stable format");
_Static_assert(sizeof(pestle_plan_kernel_t) == 128, "a stable format");
_Static_assert(sizeof(pestle_plan_step_t) == 40, "a stable format");
_Static_assert(sizeof(pestle_plan_constant_ref_t) == 56, "a stable format");
_Static_assert(sizeof(pestle_plan_part_t) == 16, "a stable format");
_Static_assert(sizeof(pestle_plan_part_place_t) == 16, "a stable format");
_Static_assert(sizeof(pestle_plan_location_t) == 24, "a stable format");
_Static_assert(sizeof(pestle_plan_collective_t) == 40, "a stable format");

#define MALFORMED(...) PESTLE_ERROR(MALFORMED, __VA_ARGS__)

// The plan while it is checked: each pointer is set once its section is known
// to lie within.
typedef struct checker_t {
  const char* data;
  size_t size;
  const pestle_plan_header_t* header;
  const char* strings;
  const pestle_plan_io_t* inputs;
  const pestle_plan_io_t* outputs;
  const pestle_plan_kernel_t* kernels;
  const pestle_plan_binding_t* bindings;
  const pestle_plan_step_t* steps;
  const pestle_plan_constant_ref_t* constants;
  const pestle_plan_call_t* calls;
  const pestle_plan_tensor_t* tensors;
  const pestle_plan_location_t* locations;
  const uint32_t* location_ids;
  const pestle_plan_collective_t* collectives;
  const int32_t* groups;
  const pestle_plan_part_t* parts;
  const pestle_plan_part_place_t* places;
} checker_t;

// --- Header ---

static pestle_status_t check_header(const checker_t* c, bool verify) {
  if (c->size < sizeof(pestle_plan_header_t)) {
    return MALFORMED(
        "the plan has %zu bytes, less than its header of %zu: it "
        "is cut off or not a plan",
        c->size, sizeof(pestle_plan_header_t));
  }
  const pestle_plan_header_t* h = c->header;
  if (memcmp(h->magic, PESTLE_PLAN_MAGIC, sizeof(h->magic)) != 0) {
    return MALFORMED("these bytes are not a plan: they do not begin with %s",
                     PESTLE_PLAN_MAGIC);
  }
  if (h->version != PESTLE_PLAN_VERSION ||
      h->header_size != sizeof(pestle_plan_header_t)) {
    return PESTLE_ERROR(INCOMPATIBLE,
                        "the plan has format version %" PRIu32
                        ", this Pestle reads %u; compile the model again",
                        h->version, PESTLE_PLAN_VERSION);
  }
  if (h->size != c->size) {
    return MALFORMED("the plan says %" PRIu64
                     " bytes but has %zu: it is cut off or damaged",
                     h->size, c->size);
  }
  if (h->checked < sizeof(*h) || h->checked > h->size) {
    return MALFORMED("the plan has a checksum of %" PRIu64 " of its %" PRIu64
                     " bytes",
                     h->checked, h->size);
  }
  if (verify && pestle_hash64(c->data + PESTLE_PLAN_CHECKED_FROM,
                              (size_t)h->checked - PESTLE_PLAN_CHECKED_FROM) !=
                    h->checksum) {
    return MALFORMED("the plan's checksum does not match: it is damaged");
  }
  if (h->arena_size < 0 || h->arena_size > LARGEST_SIZE ||
      h->scratch_size < 0 || h->scratch_size > LARGEST_SIZE ||
      h->arena_size % 64 || h->scratch_size % 64) {
    return MALFORMED("the plan asks for an arena of %" PRId64
                     " and a scratch of %" PRId64
                     " bytes; expected multiples of 64",
                     h->arena_size, h->scratch_size);
  }
  return NULL;
}

static pestle_status_t check_section(const checker_t* c, const char* name,
                                     pestle_plan_section_t section,
                                     size_t record_size) {
  size_t bytes, end;
  if (section.offset % 64 ||
      !pestle_checked_mul(section.count, record_size, &bytes) ||
      !pestle_checked_add(section.offset, bytes, &end) ||
      end > c->header->checked) {
    return MALFORMED("section '%s' of the plan (%" PRIu64 " records at %" PRIu64
                     ") lies outside of its %" PRIu64 " bytes",
                     name, section.count, section.offset, c->header->checked);
  }
  return NULL;
}

static pestle_status_t check_sections(checker_t* c) {
  const pestle_plan_header_t* h = c->header;
  PESTLE_TRY(check_section(c, "strings", h->strings, 1));
  PESTLE_TRY(check_section(c, "code", h->code, 1));
  // Records are numbered with 32 bits.
#define PLAN_SECTION(field, Type)                                     \
  PESTLE_TRY(check_section(c, #field, h->field, sizeof(Type)));       \
  if (h->field.count >= UINT32_MAX) {                                 \
    return MALFORMED("section '%s' of the plan is too long", #field); \
  }
  PLAN_SECTION(devices, pestle_plan_device_t)
  PLAN_SECTION(inputs, pestle_plan_io_t)
  PLAN_SECTION(outputs, pestle_plan_io_t)
  PLAN_SECTION(kernels, pestle_plan_kernel_t)
  PLAN_SECTION(bindings, pestle_plan_binding_t)
  PLAN_SECTION(steps, pestle_plan_step_t)
  PLAN_SECTION(constant_refs, pestle_plan_constant_ref_t)
  PLAN_SECTION(calls, pestle_plan_call_t)
  PLAN_SECTION(call_tensors, pestle_plan_tensor_t)
  PLAN_SECTION(locations, pestle_plan_location_t)
  PLAN_SECTION(location_ids, uint32_t)
  PLAN_SECTION(collectives, pestle_plan_collective_t)
  PLAN_SECTION(groups, int32_t)
  PLAN_SECTION(parts, pestle_plan_part_t)
  PLAN_SECTION(part_places, pestle_plan_part_place_t)
#undef PLAN_SECTION
  c->strings = c->data + h->strings.offset;
  if (!h->strings.count || c->strings[0] || c->strings[h->strings.count - 1]) {
    return MALFORMED("the plan's strings do not begin and end with a 0");
  }
  if (!h->devices.count || !h->steps.count) {
    return MALFORMED("the plan has %s",
                     h->devices.count ? "no steps" : "no device");
  }
#define PLAN_RECORDS(field, Type) \
  ((const Type*)(const void*)(c->data + h->field.offset))
  c->inputs = PLAN_RECORDS(inputs, pestle_plan_io_t);
  c->outputs = PLAN_RECORDS(outputs, pestle_plan_io_t);
  c->kernels = PLAN_RECORDS(kernels, pestle_plan_kernel_t);
  c->bindings = PLAN_RECORDS(bindings, pestle_plan_binding_t);
  c->steps = PLAN_RECORDS(steps, pestle_plan_step_t);
  c->constants = PLAN_RECORDS(constant_refs, pestle_plan_constant_ref_t);
  c->calls = PLAN_RECORDS(calls, pestle_plan_call_t);
  c->tensors = PLAN_RECORDS(call_tensors, pestle_plan_tensor_t);
  c->locations = PLAN_RECORDS(locations, pestle_plan_location_t);
  c->location_ids = PLAN_RECORDS(location_ids, uint32_t);
  c->collectives = PLAN_RECORDS(collectives, pestle_plan_collective_t);
  c->groups = PLAN_RECORDS(groups, int32_t);
  c->parts = PLAN_RECORDS(parts, pestle_plan_part_t);
  c->places = PLAN_RECORDS(part_places, pestle_plan_part_place_t);
  return NULL;
}

static pestle_status_t check_text(const checker_t* c, const char* what,
                                  uint64_t index, pestle_plan_str_t text) {
  if (text < c->header->strings.count) return NULL;
  return MALFORMED("%s %" PRIu64 " has a text outside of the strings", what,
                   index);
}

// --- Records ---

static pestle_status_t check_devices(const checker_t* c) {
  const pestle_plan_device_t* devices =
      (const pestle_plan_device_t*)(const void*)(c->data +
                                                 c->header->devices.offset);
  for (uint64_t i = 0; i < c->header->devices.count; ++i) {
    const pestle_plan_device_t* device = &devices[i];
    const pestle_plan_str_t texts[] = {device->backend, device->cpu,
                                       device->features, device->toolchain,
                                       device->build_id};
    for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); ++t) {
      PESTLE_TRY(check_text(c, "device", i, texts[t]));
    }
    if (device->index < 0) {
      return MALFORMED("device %" PRIu64 " of the plan has index %" PRId32, i,
                       device->index);
    }
  }
  return NULL;
}

static pestle_status_t check_io(const checker_t* c, const char* what,
                                uint64_t index, const pestle_plan_io_t* io) {
  PESTLE_TRY(check_text(c, what, index, io->name));
  PESTLE_TRY(check_text(c, what, index, io->dictionary));
  if (io->dictionary && io->dtype != PESTLE_I32) {
    return MALFORMED("%s %" PRIu64
                     " of the plan is of strings, and has dtype %u",
                     what, index, io->dtype);
  }
  if (!pestle_dtype_is_stored((pestle_dtype_t)io->dtype) ||
      io->rank > PESTLE_MAX_RANK || io->bounded > 1 ||
      io->align_log2 > MOST_ALIGN_LOG2) {
    return MALFORMED("%s %" PRIu64
                     " of the plan has dtype %u, rank %u and an alignment of "
                     "2^%u bytes",
                     what, index, io->dtype, io->rank, io->align_log2);
  }
  int64_t count, bytes;
  int64_t element = pestle_dtype_size((pestle_dtype_t)io->dtype);
  if (!pestle_checked_count(io->dims, io->rank, &count) ||
      !pestle_checked_mul_i64(count, element, &bytes) || bytes > LARGEST_SIZE ||
      (uint64_t)bytes != io->size) {
    return MALFORMED("the dims of %s %" PRIu64
                     " of the plan do not give its %" PRIu64 " bytes",
                     what, index, io->size);
  }
  if (io->bounded &&
      (io->shape_offset < 0 || io->shape_offset % 8 ||
       io->shape_offset > c->header->arena_size - 8 * (int64_t)io->rank)) {
    return MALFORMED("%s %" PRIu64
                     " of the plan has its extents outside of the arena",
                     what, index);
  }
  return NULL;
}

// What input and output say of each other.
static pestle_status_t check_alias(const char* what, uint64_t index,
                                   const pestle_plan_io_t* io,
                                   const pestle_plan_io_t* others,
                                   uint64_t count) {
  if (io->alias == -1) return NULL;
  // Numbers below 0 become ones that are no index. A bounded input was refused before; an
  // output's bound is asked where the input that names it is checked.
  if ((uint64_t)io->alias < count) {
    const pestle_plan_io_t* other = &others[io->alias];
    if ((uint64_t)other->alias == index && other->size == io->size &&
        !other->bounded) {
      return NULL;
    }
  }
  return MALFORMED("%s %" PRIu64
                   " of the plan shares the storage of a tensor that does not "
                   "share its own",
                   what, index);
}

static pestle_status_t check_ios(const checker_t* c) {
  for (uint64_t i = 0; i < c->header->inputs.count; ++i) {
    PESTLE_TRY(check_io(c, "input", i, &c->inputs[i]));
    if (c->inputs[i].bounded) {
      return MALFORMED("input %" PRIu64 " of the plan is bounded", i);
    }
  }
  for (uint64_t i = 0; i < c->header->inputs.count; ++i) {
    PESTLE_TRY(check_alias("input", i, &c->inputs[i], c->outputs,
                           c->header->outputs.count));
  }
  for (uint64_t i = 0; i < c->header->outputs.count; ++i) {
    PESTLE_TRY(check_io(c, "output", i, &c->outputs[i]));
    PESTLE_TRY(check_alias("output", i, &c->outputs[i], c->inputs,
                           c->header->inputs.count));
  }
  return NULL;
}

static pestle_status_t check_locations(const checker_t* c) {
  const pestle_plan_header_t* h = c->header;
  for (uint64_t i = 0; i < h->locations.count; ++i) {
    const pestle_plan_location_t* l = &c->locations[i];
    PESTLE_TRY(check_text(c, "location", i, l->op));
    PESTLE_TRY(check_text(c, "location", i, l->name));
    PESTLE_TRY(check_text(c, "location", i, l->file));
  }
  for (uint64_t i = 0; i < h->location_ids.count; ++i) {
    if (c->location_ids[i] < h->locations.count) continue;
    return MALFORMED("the plan names location %" PRIu32 " of %" PRIu64,
                     c->location_ids[i], h->locations.count);
  }
  return NULL;
}

static bool has_locations(const checker_t* c, uint32_t first, uint32_t count) {
  uint64_t there = c->header->location_ids.count;
  return first <= there && count <= there - first;
}

static pestle_status_t check_kernels(const checker_t* c) {
  const pestle_plan_header_t* h = c->header;
  for (uint64_t i = 0; i < h->kernels.count; ++i) {
    const pestle_plan_kernel_t* kernel = &c->kernels[i];
    PESTLE_TRY(check_text(c, "kernel", i, kernel->name));
    PESTLE_TRY(check_text(c, "kernel", i, kernel->note));
    size_t end;
    if (!pestle_checked_add(kernel->code_offset, kernel->code_size, &end) ||
        end > h->code.count) {
      return MALFORMED("the code of kernel '%s' lies outside of its section",
                       c->strings + kernel->name);
    }
    if (!has_locations(c, kernel->first_location, kernel->location_count)) {
      return MALFORMED("kernel '%s' has locations that there are not",
                       c->strings + kernel->name);
    }
    if (kernel->device >= h->devices.count || kernel->group[0] < 0 ||
        kernel->group[1] < 0 || kernel->group[2] < 0 ||
        kernel->shared_bytes > (uint64_t)h->scratch_size) {
      return MALFORMED(
          "kernel '%s' has a device, group or scratch out of "
          "range",
          c->strings + kernel->name);
    }
  }
  return NULL;
}

// Whether the plan's own checksum is of its bytes too, so that nobody who reads them
// looks at their hash.
static bool is_checked(const checker_t* c,
                       const pestle_plan_constant_ref_t* ref) {
  return ref->external || ref->offset + ref->size <= c->header->checked;
}

static pestle_status_t check_constants(const checker_t* c) {
  for (uint64_t i = 0; i < c->header->constant_refs.count; ++i) {
    const pestle_plan_constant_ref_t* ref = &c->constants[i];
    if (ref->external == 1 && !ref->offset && ref->size &&
        ref->size <= (uint64_t)LARGEST_SIZE) {
      continue;
    }
    if (ref->external || ref->offset % 64 || ref->offset > c->size ||
        ref->size > c->size - ref->offset) {
      return MALFORMED("constant %" PRIu64 " of the plan (%" PRIu64
                       " bytes at %" PRIu64 ") lies outside of its %zu bytes",
                       i, ref->size, ref->offset, c->size);
    }
    bool has_hash = ref->hash[0] || ref->hash[1];
    if (!is_checked(c, ref) &&
        (ref->offset < c->header->checked || !has_hash)) {
      return MALFORMED("constant %" PRIu64
                       " of the plan has neither a hash nor part in the plan's "
                       "checksum",
                       i);
    }
  }
  return NULL;
}

static pestle_status_t check_parts(const checker_t* c) {
  const pestle_plan_header_t* h = c->header;
  for (uint64_t i = 0; i < h->parts.count; ++i) {
    const pestle_plan_part_t* part = &c->parts[i];
    if (part->first > h->part_places.count ||
        (uint64_t)h->partitions > h->part_places.count - part->first) {
      return MALFORMED("part %" PRIu64
                       " of the plan has no place for each of %" PRId32
                       " partitions",
                       i, h->partitions);
    }
    for (int32_t p = 0; p < h->partitions; ++p) {
      const pestle_plan_part_place_t* at =
          &c->places[part->first + (uint32_t)p];
      if (at->constant < h->constant_refs.count && at->offset % 64 == 0 &&
          at->offset <= c->constants[at->constant].size &&
          part->size <= c->constants[at->constant].size - at->offset) {
        continue;
      }
      return MALFORMED("part %" PRIu64 " of the plan (%" PRIu64
                       " bytes) lies outside of constant %" PRIu32
                       " for partition %" PRId32,
                       i, part->size, at->constant, p);
    }
  }
  return NULL;
}

static bool may_be_written(const pestle_plan_binding_t* binding) {
  return binding->storage == PESTLE_PLAN_ARENA ||
         binding->storage == PESTLE_PLAN_OUTPUT;
}

static pestle_status_t check_bindings(const checker_t* c) {
  const pestle_plan_header_t* h = c->header;
  for (uint64_t i = 0; i < h->bindings.count; ++i) {
    const pestle_plan_binding_t* binding = &c->bindings[i];
    uint64_t limit = 0;
    bool known = true;
    switch (binding->storage) {
      case PESTLE_PLAN_ARENA:
        limit = (uint64_t)h->arena_size;
        break;
      case PESTLE_PLAN_INPUT:
        known = binding->index < h->inputs.count;
        if (known) limit = c->inputs[binding->index].size;
        break;
      case PESTLE_PLAN_OUTPUT:
        known = binding->index < h->outputs.count;
        if (known) limit = c->outputs[binding->index].size;
        break;
      case PESTLE_PLAN_CONSTANT:
        known = binding->index < h->constant_refs.count;
        if (known) limit = c->constants[binding->index].size;
        known = known && is_checked(c, &c->constants[binding->index]);
        break;
      case PESTLE_PLAN_PART:
        known = binding->index < h->parts.count;
        if (known) limit = c->parts[binding->index].size;
        break;
      default:
        known = false;
    }
    if (!known || binding->offset > limit ||
        binding->size > limit - binding->offset) {
      return MALFORMED("binding %" PRIu64 " of the plan (storage %u %" PRIu32
                       ", %" PRIu64 " bytes at %" PRIu64
                       ") lies outside of its storage",
                       i, (unsigned)binding->storage, binding->index,
                       binding->size, binding->offset);
    }
    if (binding->flags & ~(unsigned)PESTLE_PLAN_WRITTEN ||
        (binding->flags && !may_be_written(binding))) {
      return MALFORMED("binding %" PRIu64
                       " of the plan says that an input or a constant is "
                       "written, or what this Pestle does not know",
                       i);
    }
  }
  return NULL;
}

static pestle_status_t check_tensor(const checker_t* c, uint64_t index) {
  const pestle_plan_tensor_t* t = &c->tensors[index];
  int64_t count, bytes;
  if (pestle_dtype_is_stored((pestle_dtype_t)t->dtype) &&
      t->rank <= PESTLE_MAX_RANK &&
      pestle_checked_count(t->dims, t->rank, &count) &&
      pestle_checked_mul_i64(count, pestle_dtype_size((pestle_dtype_t)t->dtype),
                             &bytes) &&
      bytes <= LARGEST_SIZE) {
    return NULL;
  }
  return MALFORMED("tensor %" PRIu64 " of the plan's calls is none", index);
}

static pestle_status_t check_calls(const checker_t* c) {
  const pestle_plan_header_t* h = c->header;
  for (uint64_t i = 0; i < h->call_tensors.count; ++i)
    PESTLE_TRY(check_tensor(c, i));
  for (uint64_t i = 0; i < h->calls.count; ++i) {
    const pestle_plan_call_t* call = &c->calls[i];
    const pestle_plan_str_t texts[] = {call->name, call->version, call->config,
                                       call->dictionary, call->computations};
    for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); ++t) {
      PESTLE_TRY(check_text(c, "call", i, texts[t]));
    }
    uint64_t used = (uint64_t)call->operand_count + call->result_count;
    if (call->kind > PESTLE_PLAN_CALL_EVAL ||
        call->first > h->call_tensors.count ||
        used > h->call_tensors.count - call->first) {
      return MALFORMED("call %" PRIu64
                       " of the plan is of no kind that this Pestle knows, or "
                       "has tensors that do not exist",
                       i);
    }
  }
  return NULL;
}

// --- Collectives ---

// As many as a world has, which bounds their product.
#define MOST_PROCESSES (1 << 20)

static bool is_number(uint32_t kind) {
  return kind == PESTLE_PLAN_PARTITION_ID || kind == PESTLE_PLAN_REPLICA_ID;
}

static bool has_groups(const checker_t* c, const pestle_plan_collective_t* k) {
  const pestle_plan_header_t* h = c->header;
  int64_t processes = (int64_t)h->replicas * h->partitions;
  uint64_t used = (uint64_t)k->group_count * k->group_size;
  if (k->first_group > h->groups.count ||
      used > h->groups.count - k->first_group ||
      (k->kind == PESTLE_PLAN_PERMUTE && k->group_size != 2)) {
    return false;
  }
  for (uint64_t i = 0; i < used; ++i) {
    int32_t rank = c->groups[k->first_group + i];
    bool may_end = k->kind != PESTLE_PLAN_PERMUTE && i % k->group_size;
    if (rank < (may_end ? -1 : 0) || rank >= processes) return false;
  }
  return true;
}

static pestle_status_t check_processes(const checker_t* c) {
  const pestle_plan_header_t* h = c->header;
  if (h->replicas < 1 || h->partitions < 1 || h->replicas > MOST_PROCESSES ||
      h->partitions > MOST_PROCESSES / h->replicas) {
    return MALFORMED("the plan is for %" PRId32 " replicas of %" PRId32
                     " partitions",
                     h->replicas, h->partitions);
  }
  return NULL;
}

static pestle_status_t check_collectives(const checker_t* c) {
  const pestle_plan_header_t* h = c->header;
  for (uint64_t i = 0; i < h->collectives.count; ++i) {
    const pestle_plan_collective_t* k = &c->collectives[i];
    if (k->kind > PESTLE_PLAN_REPLICA_ID ||
        k->reduction > PESTLE_REDUCTION_OR || !k->tensor_count ||
        !pestle_dtype_is_stored((pestle_dtype_t)k->dtype) ||
        !has_groups(c, k) ||
        (k->kind < PESTLE_PLAN_PERMUTE &&
         (!k->group_count || !k->group_size))) {
      return MALFORMED("collective %" PRIu64
                       " of the plan is of no kind that this Pestle knows, or "
                       "has processes that do not exist",
                       i);
    }
  }
  return NULL;
}

// How many times one of the two is the other: those of one group.
static const char* collective_fault(const checker_t* c,
                                    const pestle_plan_step_t* step) {
  if (step->kernel >= c->header->collectives.count)
    return "names no collective";
  const pestle_plan_collective_t* k = &c->collectives[step->kernel];
  const pestle_plan_binding_t* b = c->bindings + step->first;
  if (is_number(k->kind)) {
    return step->count == 1 && b->size == 4 && may_be_written(b)
               ? NULL
               : "does not give one u32";
  }
  uint64_t n = k->tensor_count,
           size = pestle_dtype_size((pestle_dtype_t)k->dtype);
  if (step->count != 2 * n) return "does not fit its collective's tensors";
  for (uint64_t i = 0; i < n; ++i) {
    const pestle_plan_binding_t *from = &b[i], *to = &b[n + i];
    uint64_t sent = from->size, got = to->size;
    if (k->kind == PESTLE_PLAN_ALL_GATHER) sent *= k->group_size;
    if (k->kind == PESTLE_PLAN_REDUCE_SCATTER) got *= k->group_size;
    if (sent != got || from->size % size || to->size % size ||
        (k->kind == PESTLE_PLAN_ALL_TO_ALL &&
         from->size % (k->group_size * size))) {
      return "has a binding of another size than its collective needs";
    }
    if (!may_be_written(to)) return "writes to an input or a constant";
  }
  return NULL;
}

// --- Steps ---

static uint64_t tensor_bytes(const pestle_plan_tensor_t* t) {
  int64_t count = 0;
  (void)pestle_checked_count(t->dims, t->rank, &count);
  return (uint64_t)count * pestle_dtype_size((pestle_dtype_t)t->dtype);
}

static const char* call_fault(const checker_t* c,
                              const pestle_plan_step_t* step) {
  if (step->kernel >= c->header->calls.count) return "names no call";
  const pestle_plan_call_t* call = &c->calls[step->kernel];
  if (step->count != call->operand_count + call->result_count) {
    return "does not fit its call's tensors";
  }
  for (uint32_t i = 0; i < step->count; ++i) {
    const pestle_plan_binding_t* b = &c->bindings[step->first + i];
    if (b->size != tensor_bytes(&c->tensors[call->first + i])) {
      return "has a binding of another size than its tensor";
    }
    bool result = i >= call->operand_count;
    if (result != (b->flags == PESTLE_PLAN_WRITTEN)) {
      return "writes to an operand, or does not write a result";
    }
  }
  return NULL;
}

// What speaks against the step, as a static text, or NULL.
static const char* step_fault(const checker_t* c, uint64_t index) {
  const pestle_plan_header_t* h = c->header;
  const pestle_plan_step_t* step = &c->steps[index];
  if (step->device >= h->devices.count) return "names no device";
  if (step->label >= h->strings.count) return "has no text as its label";
  uint64_t used = step->count;
  if (step->kind == PESTLE_PLAN_COPY) used = 2;
  if (step->kind == PESTLE_PLAN_JUMP_IF_ZERO ||
      step->kind == PESTLE_PLAN_JUMP_TABLE) {
    used = 1;
  }
  if (step->kind == PESTLE_PLAN_JUMP || step->kind == PESTLE_PLAN_REPEAT ||
      step->kind == PESTLE_PLAN_END) {
    used = 0;
  }
  if (used && (step->first > h->bindings.count ||
               used > h->bindings.count - step->first)) {
    return "has bindings that do not exist";
  }
  const pestle_plan_binding_t* bindings = c->bindings + step->first;
  switch (step->kind) {
    case PESTLE_PLAN_LAUNCH:
      if (step->kernel >= h->kernels.count) return "names no kernel";
      if (c->kernels[step->kernel].arg_count != step->count ||
          c->kernels[step->kernel].device != step->device) {
        return "does not fit its kernel's arguments or device";
      }
      return NULL;
    case PESTLE_PLAN_COPY:
      if (bindings[0].size != bindings[1].size) return "copies unequal sizes";
      return may_be_written(&bindings[1]) ? NULL
                                          : "writes to an input or a "
                                            "constant";
    case PESTLE_PLAN_JUMP_IF_ZERO:
      if (bindings[0].size != 1 && bindings[0].size != 4) {
        return "tests neither an i1 nor an i32";
      }
      return step->target < h->steps.count ? NULL : "jumps out of the plan";
    case PESTLE_PLAN_JUMP:
      return step->target < h->steps.count ? NULL : "jumps out of the plan";
    case PESTLE_PLAN_JUMP_TABLE:
      if (bindings[0].size != 4) return "does not switch over an i32";
      if (!step->count || step->target > h->steps.count ||
          step->count > h->steps.count - step->target) {
        return "jumps out of the plan";
      }
      return NULL;
    case PESTLE_PLAN_REPEAT:
      return step->target < index && step->count ? NULL
                                                 : "repeats no earlier step";
    case PESTLE_PLAN_CALL:
      return call_fault(c, step);
    case PESTLE_PLAN_COLLECTIVE:
      return collective_fault(c, step);
    case PESTLE_PLAN_END:
      return NULL;
    default:
      return "has an unknown kind";
  }
}

static pestle_status_t check_steps(const checker_t* c) {
  uint64_t count = c->header->steps.count, repeats = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const pestle_plan_step_t* step = &c->steps[i];
    const char* fault = step_fault(c, i);
    if (!has_locations(c, step->first_location, step->location_count)) {
      fault = "has locations that there are not";
    }
    if (step->kind == PESTLE_PLAN_REPEAT && step->kernel != repeats++) {
      fault = "is not the loop that it says";
    }
    if (fault) {
      return MALFORMED("step %" PRIu64 " of the plan %s", i, fault);
    }
  }
  uint32_t last = c->steps[count - 1].kind;
  if (last != PESTLE_PLAN_END && last != PESTLE_PLAN_JUMP) {
    return MALFORMED("the plan's last step is not its end");
  }
  return NULL;
}

pestle_status_t pestle_plan_check(const void* data, size_t size, bool verify) {
  if (!pestle_is_aligned(data, 64)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a plan must lie at a multiple of 64 bytes");
  }
  checker_t c = {.data = data, .size = size, .header = data};
  PESTLE_TRY(check_header(&c, verify));
  PESTLE_TRY(check_sections(&c));
  PESTLE_TRY(check_text(&c, "the name of plan", 0, c.header->name));
  PESTLE_TRY(check_devices(&c));
  PESTLE_TRY(check_ios(&c));
  PESTLE_TRY(check_locations(&c));
  PESTLE_TRY(check_kernels(&c));
  PESTLE_TRY(check_constants(&c));
  PESTLE_TRY(check_processes(&c));
  PESTLE_TRY(check_parts(&c));
  PESTLE_TRY(check_bindings(&c));
  PESTLE_TRY(check_calls(&c));
  PESTLE_TRY(check_collectives(&c));
  return check_steps(&c);
}
