// SPDX-License-Identifier: Apache-2.0
// The binary interface of XLA's foreign functions, 0.3, as facts: how a function that
// was built for JAX's own backends is called, and what it may ask meanwhile.
// tests/pjrt/ffi_test.py holds it against the header that JAX ships.
#ifndef PESTLE_PJRT_FFI_ABI_H_
#define PESTLE_PJRT_FFI_ABI_H_

#include <stddef.h>
#include <stdint.h>

#define XLA_FFI_API_MAJOR 0
#define XLA_FFI_API_MINOR 3

typedef enum XLA_FFI_Extension_Type {
  XLA_FFI_Extension_Metadata = 1,
} XLA_FFI_Extension_Type;

typedef struct XLA_FFI_Extension_Base {
  size_t struct_size;
  XLA_FFI_Extension_Type type;
  struct XLA_FFI_Extension_Base* next;
} XLA_FFI_Extension_Base;

// Every struct but the plainest begins so.
#define XLA_FFI_HEAD_ \
  size_t struct_size; \
  XLA_FFI_Extension_Base* extension_start

typedef struct XLA_FFI_Api_Version {
  XLA_FFI_HEAD_;
  int major_version;
  int minor_version;
} XLA_FFI_Api_Version;

// Opaque to functions; each backend has its own.
typedef struct XLA_FFI_Error XLA_FFI_Error;
typedef struct XLA_FFI_Future XLA_FFI_Future;
typedef struct XLA_FFI_ExecutionContext XLA_FFI_ExecutionContext;
typedef struct XLA_FFI_Api XLA_FFI_Api;

// X(framework's name, number, Pestle's dtype). Elements of fewer than 8 bits lie
// otherwise in XLA's buffers, and are not here.
#define XLA_FFI_DTYPES(X)             \
  X(PRED, 1, I1)                      \
  X(S8, 2, I8)                        \
  X(S16, 3, I16)                      \
  X(S32, 4, I32)                      \
  X(S64, 5, I64)                      \
  X(U8, 6, U8)                        \
  X(U16, 7, U16)                      \
  X(U32, 8, U32)                      \
  X(U64, 9, U64)                      \
  X(F16, 10, F16)                     \
  X(F32, 11, F32)                     \
  X(F64, 12, F64)                     \
  X(C64, 15, C64)                     \
  X(BF16, 16, BF16)                   \
  X(C128, 18, C128)                   \
  X(F8E5M2, 19, F8E5M2)               \
  X(F8E4M3FN, 20, F8E4M3FN)           \
  X(F8E4M3B11FNUZ, 23, F8E4M3B11FNUZ) \
  X(F8E5M2FNUZ, 24, F8E5M2FNUZ)       \
  X(F8E4M3FNUZ, 25, F8E4M3FNUZ)       \
  X(F8E4M3, 28, F8E4M3)               \
  X(F8E3M4, 29, F8E3M4)               \
  X(F8E8M0FNU, 33, F8E8M0FNU)

typedef enum XLA_FFI_DataType {
  XLA_FFI_DataType_INVALID = 0,
#define XLA_FFI_DTYPE_(NAME, NUMBER, DTYPE) XLA_FFI_DataType_##NAME = NUMBER,
  XLA_FFI_DTYPES(XLA_FFI_DTYPE_)
#undef XLA_FFI_DTYPE_
} XLA_FFI_DataType;

typedef struct XLA_FFI_Buffer {
  XLA_FFI_HEAD_;
  XLA_FFI_DataType dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
} XLA_FFI_Buffer;

enum { XLA_FFI_ArgType_BUFFER = 1, XLA_FFI_RetType_BUFFER = 1 };

typedef enum XLA_FFI_AttrType {
  XLA_FFI_AttrType_ARRAY = 1,
  XLA_FFI_AttrType_DICTIONARY = 2,
  XLA_FFI_AttrType_SCALAR = 3,
  XLA_FFI_AttrType_STRING = 4,
} XLA_FFI_AttrType;

typedef struct XLA_FFI_ByteSpan {
  const char* ptr;
  size_t len;
} XLA_FFI_ByteSpan;

typedef struct XLA_FFI_Scalar {
  XLA_FFI_DataType dtype;
  void* value;
} XLA_FFI_Scalar;

typedef struct XLA_FFI_Array {
  XLA_FFI_DataType dtype;
  size_t size;
  void* data;
} XLA_FFI_Array;

typedef struct XLA_FFI_TypeId {
  int64_t type_id;
} XLA_FFI_TypeId;

typedef struct XLA_FFI_TypeInfo {
  XLA_FFI_HEAD_;
  void (*deleter)(void* object);
} XLA_FFI_TypeInfo;

typedef enum XLA_FFI_ExecutionStage {
  XLA_FFI_ExecutionStage_INSTANTIATE = 0,
  XLA_FFI_ExecutionStage_PREPARE = 1,
  XLA_FFI_ExecutionStage_INITIALIZE = 2,
  XLA_FFI_ExecutionStage_EXECUTE = 3,
} XLA_FFI_ExecutionStage;
enum { XLA_FFI_STAGES = 4 };

typedef struct XLA_FFI_Args {
  XLA_FFI_HEAD_;
  int64_t size;
  int* types;
  void** args;
} XLA_FFI_Args;

typedef struct XLA_FFI_Rets {
  XLA_FFI_HEAD_;
  int64_t size;
  int* types;
  void** rets;
} XLA_FFI_Rets;

typedef struct XLA_FFI_Attrs {
  XLA_FFI_HEAD_;
  int64_t size;
  XLA_FFI_AttrType* types;
  XLA_FFI_ByteSpan** names;  // ascending
  void** attrs;
} XLA_FFI_Attrs;

typedef struct XLA_FFI_CallFrame {
  XLA_FFI_HEAD_;
  const XLA_FFI_Api* api;
  XLA_FFI_ExecutionContext* ctx;
  XLA_FFI_ExecutionStage stage;
  XLA_FFI_Args args;
  XLA_FFI_Rets rets;
  XLA_FFI_Attrs attrs;
  XLA_FFI_Future* future;  // set by a function that goes on after its return
} XLA_FFI_CallFrame;

typedef XLA_FFI_Error* (*XLA_FFI_Handler)(XLA_FFI_CallFrame* frame);

typedef struct XLA_FFI_Handler_Bundle {
  XLA_FFI_Handler instantiate, prepare, initialize, execute;
} XLA_FFI_Handler_Bundle;

typedef struct XLA_FFI_Metadata {
  size_t struct_size;
  XLA_FFI_Api_Version api_version;
  uint32_t traits;
  XLA_FFI_TypeId state_type_id;
} XLA_FFI_Metadata;

typedef struct XLA_FFI_Metadata_Extension {
  XLA_FFI_Extension_Base extension_base;
  XLA_FFI_Metadata* metadata;
} XLA_FFI_Metadata_Extension;

// --- What a function may ask ---

typedef struct XLA_FFI_Error_Create_Args {
  XLA_FFI_HEAD_;
  const char* message;
  int errc;  // as PJRT_Error_Code
} XLA_FFI_Error_Create_Args;
typedef struct XLA_FFI_Error_GetMessage_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_Error* error;
  const char* message;  // out
} XLA_FFI_Error_GetMessage_Args;
typedef struct XLA_FFI_Error_Destroy_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_Error* error;
} XLA_FFI_Error_Destroy_Args;
typedef struct XLA_FFI_Handler_Register_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_ByteSpan name;
  XLA_FFI_ByteSpan platform;
  XLA_FFI_Handler_Bundle bundle;
  uint32_t traits;
} XLA_FFI_Handler_Register_Args;
typedef struct XLA_FFI_Stream_Get_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_ExecutionContext* ctx;
  void* stream;  // out
} XLA_FFI_Stream_Get_Args;
typedef struct XLA_FFI_Type_Register_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_ByteSpan name;
  XLA_FFI_TypeId* type_id;  // in and out
  const XLA_FFI_TypeInfo* type_info;
} XLA_FFI_Type_Register_Args;
typedef struct XLA_FFI_ExecutionContext_Get_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_ExecutionContext* ctx;
  XLA_FFI_TypeId* type_id;
  void* data;  // out
} XLA_FFI_ExecutionContext_Get_Args;
typedef struct XLA_FFI_State_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_ExecutionContext* ctx;
  XLA_FFI_ExecutionStage stage;
  XLA_FFI_TypeId* type_id;
  void* state;  // in of Set, out of Get
} XLA_FFI_State_Args;
typedef XLA_FFI_State_Args XLA_FFI_State_Set_Args, XLA_FFI_State_Get_Args;
typedef struct XLA_FFI_DeviceMemory_Allocate_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_ExecutionContext* ctx;
  size_t size;
  size_t alignment;
  void* data;  // out
} XLA_FFI_DeviceMemory_Allocate_Args;
typedef struct XLA_FFI_DeviceMemory_Free_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_ExecutionContext* ctx;
  size_t size;
  void* data;
} XLA_FFI_DeviceMemory_Free_Args;
typedef struct XLA_FFI_ThreadPool_Schedule_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_ExecutionContext* ctx;
  void (*task)(void* data);
  void* data;
} XLA_FFI_ThreadPool_Schedule_Args;
typedef struct XLA_FFI_ThreadPool_NumThreads_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_ExecutionContext* ctx;
  int64_t* num_threads;  // out
} XLA_FFI_ThreadPool_NumThreads_Args;
typedef struct XLA_FFI_Future_Create_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_Future* future;  // out
} XLA_FFI_Future_Create_Args;
typedef struct XLA_FFI_Future_SetAvailable_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_Future* future;
} XLA_FFI_Future_SetAvailable_Args;
typedef struct XLA_FFI_Future_SetError_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_Future* future;
  XLA_FFI_Error* error;  // taken over
} XLA_FFI_Future_SetError_Args;
typedef struct XLA_FFI_RunId_Get_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_ExecutionContext* ctx;
  int64_t run_id;  // out
} XLA_FFI_RunId_Get_Args;
typedef struct XLA_FFI_DeviceOrdinal_Get_Args {
  XLA_FFI_HEAD_;
  XLA_FFI_ExecutionContext* ctx;
  int32_t device_ordinal;  // out
} XLA_FFI_DeviceOrdinal_Get_Args;

// X(name, returns) in the order of the table.
#define XLA_FFI_SLOTS(X)                           \
  X(XLA_FFI_Error_Create, XLA_FFI_Error*)          \
  X(XLA_FFI_Error_GetMessage, void)                \
  X(XLA_FFI_Error_Destroy, void)                   \
  X(XLA_FFI_Handler_Register, XLA_FFI_Error*)      \
  X(XLA_FFI_Stream_Get, XLA_FFI_Error*)            \
  X(XLA_FFI_Type_Register, XLA_FFI_Error*)         \
  X(XLA_FFI_ExecutionContext_Get, XLA_FFI_Error*)  \
  X(XLA_FFI_State_Set, XLA_FFI_Error*)             \
  X(XLA_FFI_State_Get, XLA_FFI_Error*)             \
  X(XLA_FFI_DeviceMemory_Allocate, XLA_FFI_Error*) \
  X(XLA_FFI_DeviceMemory_Free, XLA_FFI_Error*)     \
  X(XLA_FFI_ThreadPool_Schedule, XLA_FFI_Error*)   \
  X(XLA_FFI_ThreadPool_NumThreads, XLA_FFI_Error*) \
  X(XLA_FFI_Future_Create, XLA_FFI_Error*)         \
  X(XLA_FFI_Future_SetAvailable, XLA_FFI_Error*)   \
  X(XLA_FFI_Future_SetError, XLA_FFI_Error*)       \
  X(XLA_FFI_RunId_Get, XLA_FFI_Error*)             \
  X(XLA_FFI_DeviceOrdinal_Get, XLA_FFI_Error*)

struct XLA_FFI_Api {
  XLA_FFI_HEAD_;
  XLA_FFI_Api_Version api_version;
  const void* internal_api;  // XLA's own; NULL here
#define XLA_FFI_SLOT_(NAME, RETURNS) RETURNS (*NAME)(NAME##_Args*);
  XLA_FFI_SLOTS(XLA_FFI_SLOT_)
#undef XLA_FFI_SLOT_
};

#endif  // PESTLE_PJRT_FFI_ABI_H_
