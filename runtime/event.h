// SPDX-License-Identifier: Apache-2.0
// Events count: each record gets a ticket, and a wait is for the latest ticket
// that was given out when the wait was asked for. One of a device whose backend
// offers events is the backend's (|native|): its number is the latest ticket
// that came.
#ifndef PESTLE_RUNTIME_EVENT_H_
#define PESTLE_RUNTIME_EVENT_H_

#include "pestle/runtime.h"

// The backend's event and the device that it is of, or NULL: the host's.
pestle_device_event_t* pestle_event_native(const pestle_event_t* event,
                                           pestle_device_t** out_device);

void pestle_event_retain(pestle_event_t* event);
// Gives out a ticket.
uint64_t pestle_event_take_ticket(pestle_event_t* event);
// The latest ticket; 0: never recorded.
uint64_t pestle_event_ticket(pestle_event_t* event);
// By the calling thread.
PESTLE_NODISCARD pestle_status_t pestle_event_signal(pestle_event_t* event,
                                                     uint64_t ticket);
PESTLE_NODISCARD pestle_status_t pestle_event_wait_for(pestle_event_t* event,
                                                       uint64_t ticket);

// Queues a signal, or a wait for one. The operation keeps |event|. Between
// streams and events of two backends it is the caller that waits.
PESTLE_NODISCARD pestle_status_t
pestle_stream_push_signal(pestle_stream_t* stream, pestle_event_t* event);
PESTLE_NODISCARD pestle_status_t
pestle_stream_push_wait(pestle_stream_t* stream, pestle_event_t* event);

#endif  // PESTLE_RUNTIME_EVENT_H_
