// SPDX-License-Identifier: Apache-2.0
// Functions of the interface that Pestle does not offer. Each says so by its name,
// why, and what to call instead: a slot that is NULL would end the process that
// calls it.
#include "pjrt/slots.h"

#define UNIMPLEMENTED(NAME, SENTENCE)                           \
  PJRT_Error* pestle_##NAME(NAME##_Args* args) {                \
    (void)args;                                                 \
    return pestle_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED,     \
                             "Pestle does not implement " #NAME \
                             ": " SENTENCE);                    \
  }

#define STREAM                                                     \
  "programs have no send and recv; a Python callback or a custom " \
  "call takes its data as arguments"
UNIMPLEMENTED(PJRT_CopyToDeviceStream_Destroy, STREAM)
UNIMPLEMENTED(PJRT_CopyToDeviceStream_AddChunk, STREAM)
UNIMPLEMENTED(PJRT_CopyToDeviceStream_TotalBytes, STREAM)
UNIMPLEMENTED(PJRT_CopyToDeviceStream_GranuleSize, STREAM)
UNIMPLEMENTED(PJRT_CopyToDeviceStream_CurrentBytes, STREAM)

#define PARTS "a buffer is filled at once; use PJRT_Client_BufferFromHostBuffer"
UNIMPLEMENTED(PJRT_Client_CreateBuffersForAsyncHostToDevice, PARTS)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_Destroy, PARTS)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_TransferData, PARTS)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral, PARTS)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer, PARTS)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_Device, PARTS)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_BufferCount, PARTS)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_BufferSize, PARTS)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_SetBufferError, PARTS)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_AddMetadata, PARTS)
UNIMPLEMENTED(PJRT_Client_CreateAliasBuffer, PARTS)
UNIMPLEMENTED(PJRT_Client_FulfillAliasBuffer, PARTS)

UNIMPLEMENTED(PJRT_Device_PoisonExecution,
              "executions have no launch ids; the error of an execution comes "
              "with its results and its event")
UNIMPLEMENTED(PJRT_Device_CreateAsyncTrackingEvent,
              "launches are not tracked; use device_complete_events of "
              "PJRT_LoadedExecutable_Execute")
UNIMPLEMENTED(PJRT_AsyncTrackingEvent_Destroy,
              "PJRT_Device_CreateAsyncTrackingEvent makes none")
UNIMPLEMENTED(PJRT_Buffer_DonateWithControlDependency,
              "arguments are donated by the program (tf.aliasing_output, "
              "jax.buffer_donor) when it is executed")
UNIMPLEMENTED(
    PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace,
    "its answer is a protocol buffer of XLA's; buffers are row-major, "
    "and PJRT_Layouts_PJRT_Client_GetDefaultLayout says so")
