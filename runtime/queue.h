// SPDX-License-Identifier: Apache-2.0
// What the host asks of a device that is not the CPU: launches, copies and
// waiting, on a stream of the backend's or, where it has none, one after the
// other. A slot that is missing is replaced by what can be done without it, and
// refused with a sentence that names it where nothing can.
#ifndef PESTLE_RUNTIME_QUEUE_H_
#define PESTLE_RUNTIME_QUEUE_H_

#include "runtime/device.h"

// |stream| NULL: every call returns when it is done.
typedef struct pestle_queue_t {
  pestle_device_t* device;
  pestle_device_stream_t* stream;
  bool records;  // what is queued becomes a recording: nothing may wait
} pestle_queue_t;

static inline const pestle_device_api_t* pestle_device_api(
    const pestle_device_t* device) {
  return device->backend->device;
}

// Whether the backend offers all of streams, events, recordings.
bool pestle_device_has_streams(const pestle_device_t* device);
bool pestle_device_has_events(const pestle_device_t* device);
bool pestle_device_has_graphs(const pestle_device_t* device);
// Whether the device is no CPU and was opened before fork(): its driver and its
// threads are the parent's. Nothing of it is used in the child, or freed.
bool pestle_device_is_of_parent(const pestle_device_t* device);
// NULL, or UNAVAILABLE for such a device, for one that only compiles and for one
// that is lost, then with what was said first.
PESTLE_NODISCARD pestle_status_t
pestle_device_check_open(const pestle_device_t* device);
// Passes on |status| of a call of the backend's. UNAVAILABLE means that the device
// is lost: the first such status is kept, and stands for all later ones.
pestle_status_t pestle_device_said(pestle_device_t* device,
                                   pestle_status_t status);
// That one, a hold of the caller's; NULL: the device is not lost.
pestle_status_t pestle_device_fault(const pestle_device_t* device);

// NULL, or UNSUPPORTED with the name of what a device must offer to run plans
// and does not.
PESTLE_NODISCARD pestle_status_t
pestle_device_check_runs(const pestle_device_t* device);

// INTERNAL when |made|, which |slot| of the device's backend is to have made, is
// NULL: a backend that succeeds and gives nothing.
PESTLE_NODISCARD pestle_status_t pestle_device_check_made(
    const pestle_device_t* device, const char* slot, const void* made);

// A queue with a stream of its own where the device offers streams.
PESTLE_NODISCARD pestle_status_t pestle_queue_init(pestle_device_t* device,
                                                   pestle_queue_t* out_queue);
// Waits. One without a device is left alone.
void pestle_queue_deinit(pestle_queue_t* queue);

PESTLE_NODISCARD pestle_status_t
pestle_queue_launch(const pestle_queue_t* queue, const pestle_launch_t* launch);
// The host's bytes must stay until the queue is past the copy.
PESTLE_NODISCARD pestle_status_t pestle_queue_from_host(
    const pestle_queue_t* queue, const void* from, void* to, size_t size);
PESTLE_NODISCARD pestle_status_t pestle_queue_to_host(
    const pestle_queue_t* queue, const void* from, void* to, size_t size);
// Within the device; may overlap.
PESTLE_NODISCARD pestle_status_t pestle_queue_copy(const pestle_queue_t* queue,
                                                   const void* from, void* to,
                                                   size_t size);
// Waits until all is done, and says what of it failed.
PESTLE_NODISCARD pestle_status_t pestle_queue_wait(const pestle_queue_t* queue);

// Between any two devices, CPUs among them; returns when done. Ranges of one
// device that is not the CPU must not overlap.
PESTLE_NODISCARD pestle_status_t
pestle_device_copy(pestle_device_t* from_device, const void* from,
                   pestle_device_t* to_device, void* to, size_t size);
// Between the host and a device, or within the host; returns when done.
PESTLE_NODISCARD pestle_status_t pestle_device_write(pestle_device_t* device,
                                                     const void* from, void* to,
                                                     size_t size);
PESTLE_NODISCARD pestle_status_t pestle_device_read(pestle_device_t* device,
                                                    const void* from, void* to,
                                                    size_t size);

#endif  // PESTLE_RUNTIME_QUEUE_H_
