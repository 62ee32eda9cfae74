// SPDX-License-Identifier: Apache-2.0
// Functions of the interface that Pestle does not offer. Each says so by its name:
// a slot that is NULL would end the process that calls it.
#include "pjrt/slots.h"

#define UNIMPLEMENTED(NAME)                                       \
  PJRT_Error* pestle_##NAME(NAME##_Args* args) {                  \
    (void)args;                                                   \
    return pestle_pjrt_error(PJRT_Error_Code_UNIMPLEMENTED,       \
                             "Pestle does not implement " #NAME); \
  }

UNIMPLEMENTED(PJRT_CopyToDeviceStream_Destroy)
UNIMPLEMENTED(PJRT_CopyToDeviceStream_AddChunk)
UNIMPLEMENTED(PJRT_CopyToDeviceStream_TotalBytes)
UNIMPLEMENTED(PJRT_CopyToDeviceStream_GranuleSize)
UNIMPLEMENTED(PJRT_CopyToDeviceStream_CurrentBytes)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_Destroy)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_TransferData)
UNIMPLEMENTED(PJRT_Client_CreateBuffersForAsyncHostToDevice)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_Device)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_BufferCount)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_BufferSize)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_SetBufferError)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_AddMetadata)
UNIMPLEMENTED(PJRT_Client_UpdateGlobalProcessInfo)
UNIMPLEMENTED(PJRT_Client_CreateAliasBuffer)
UNIMPLEMENTED(PJRT_Client_FulfillAliasBuffer)
UNIMPLEMENTED(PJRT_AsyncHostToDeviceTransferManager_TransferLiteral)
UNIMPLEMENTED(PJRT_Device_PoisonExecution)
UNIMPLEMENTED(PJRT_Device_CreateAsyncTrackingEvent)
UNIMPLEMENTED(PJRT_AsyncTrackingEvent_Destroy)
UNIMPLEMENTED(PJRT_Buffer_DonateWithControlDependency)
UNIMPLEMENTED(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace)
