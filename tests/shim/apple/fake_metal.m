// SPDX-License-Identifier: Apache-2.0
// A stand-in for Apple's frameworks, so that plugins/metal/device.m runs where
// there is no Mac: a queue is a thread, a kernel's text is compiled as C++
// (tests/shim) and runs on this CPU. Nothing is ever freed; retain counts are
// not what is tested.
#import <Metal/Metal.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/simt.h"

// One lock for all that changes, and one condition that says that it did.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;

id class_createInstance(Class type, size_t extra);

// --- What blocks need of their runtime ---

void* _NSConcreteStackBlock[32];
void _Block_object_assign(void* to, const void* from, int flags);
void _Block_object_dispose(const void* object, int flags);
void _Block_object_assign(void* to, const void* from, int flags) {
  (void)flags;
  *(const void**)to = from;
}
void _Block_object_dispose(const void* object, int flags) {
  (void)object, (void)flags;
}

// As Apple's functions keep a block: with what it captured, after its frame.
static id kept(id block) {
  struct {
    void* isa;
    int flags, reserved;
    void* invoke;
    const struct {
      unsigned long reserved, size;
    }* descriptor;
  }* from = (void*)block;
  void* copy = malloc(from->descriptor->size);
  memcpy(copy, from, from->descriptor->size);
  return copy;
}

// --- Foundation ---

@implementation NSObject
+ (instancetype)alloc {
  return class_createInstance(self, 0);
}
+ (instancetype)new {
  return [[self alloc] init];
}
- (instancetype)init {
  return self;
}
@end

@interface NSAutoreleasePool : NSObject
- (void)drain;
@end
@implementation NSAutoreleasePool
- (void)drain {
}
@end

@implementation NSString
+ (instancetype)stringWithUTF8String:(const char*)text {
  return [[self alloc] initWithBytes:text
                              length:strlen(text)
                            encoding:NSUTF8StringEncoding];
}
- (instancetype)initWithBytes:(const void*)bytes
                       length:(NSUInteger)length
                     encoding:(NSUInteger)encoding {
  (void)encoding;
  _text = calloc(1, length + 1);
  memcpy(_text, bytes, length);
  return self;
}
- (const char*)UTF8String {
  return _text;
}
@end

@implementation NSError
- (NSString*)localizedDescription {
  return _why;
}
@end

static NSError* error_of(const char* why) {
  NSError* error = [NSError new];
  error->_why = [NSString stringWithUTF8String:why];
  return error;
}

@implementation NSMutableArray
- (NSUInteger)count {
  return _count;
}
- (id)objectAtIndex:(NSUInteger)index {
  if (index >= _count) abort();
  return _object[index];
}
- (void)addObject:(id)object {
  if (!object || _count == MOST_OBJECTS) abort();
  _object[_count++] = object;
}
- (void)removeObjectAtIndex:(NSUInteger)index {
  if (index >= _count) abort();
  --_count;
  for (; index < _count; ++index) _object[index] = _object[index + 1];
}
- (void)removeAllObjects {
  _count = 0;
}
@end

void CFRelease(CFTypeRef object) {
  if (!object) abort();  // as Apple's does
}

@interface FakeSemaphore : NSObject <OS_dispatch_semaphore> {
 @public
  intptr_t _value;
}
@end
@implementation FakeSemaphore
@end

dispatch_semaphore_t dispatch_semaphore_create(intptr_t value) {
  FakeSemaphore* s = [FakeSemaphore new];
  s->_value = value;
  return s;
}
intptr_t dispatch_semaphore_signal(dispatch_semaphore_t semaphore) {
  pthread_mutex_lock(&lock);
  ++((FakeSemaphore*)semaphore)->_value;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return 0;
}
intptr_t dispatch_semaphore_wait(dispatch_semaphore_t semaphore,
                                 dispatch_time_t timeout) {
  FakeSemaphore* s = (FakeSemaphore*)semaphore;
  (void)timeout;
  pthread_mutex_lock(&lock);
  while (s->_value <= 0) pthread_cond_wait(&changed, &lock);
  --s->_value;
  pthread_mutex_unlock(&lock);
  return 0;
}

// --- Memory and kernels ---

@interface FakeBuffer : NSObject <MTLBuffer> {
 @public
  void* _data;
  NSUInteger _size;
}
@end
@implementation FakeBuffer
- (void*)contents {
  return _data;
}
@end

// A kernel is its own library, function and pipeline.
@interface FakeKernel
    : NSObject <MTLLibrary, MTLFunction, MTLComputePipelineState> {
 @public
  char _name[128];
  unsigned _arguments, _parameters;
  void (*_run)(void* data);
}
@end
@implementation FakeKernel
- (id<MTLFunction>)newFunctionWithName:(NSString*)name {
  return strcmp(name.UTF8String, _name) ? nil : self;
}
- (NSUInteger)maxTotalThreadsPerThreadgroup {
  return 1024;
}
- (NSUInteger)threadExecutionWidth {
  return 32;
}
@end

static unsigned count_of(const char* text, const char* what) {
  unsigned count = 0;
  while ((text = strstr(text, what)) != NULL) {
    ++count;
    text += strlen(what);
  }
  return count;
}

static void write_source(FILE* f, const FakeKernel* k, const char* text) {
  fprintf(f, "#include \"metal_stdlib\"\n%s", text);
  fputs("#undef kernel\n#undef device\n#undef constant\n#include \"run.h\"\n"
        "extern \"C\" __attribute__((visibility(\"default\"))) void\n"
        "pestle_shim_run(void* data) {\n"
        "  const pestle_call_t& c = *(const pestle_call_t*)data;\n"
        "  simt_place_t g = simt->group(), l = simt->lane();\n"
        "  uint3 group = {g.x, g.y, g.z}, lane = {l.x, l.y, l.z};\n",
        f);
  fprintf(f, "  %s(", k->_name);
  for (unsigned i = 0; i < k->_arguments; ++i)
    fprintf(f, "pestle_any_t{c.buffers[%u]}, ", i);
  for (unsigned i = 0; i < k->_parameters; ++i) fprintf(f, "c.params[%u], ", i);
  fputs("group, lane);\n}\n", f);
}

static bool build(FakeKernel* k, const char* text) {
  char folder[] = "/tmp/pestle-fake-XXXXXX", command[1024];
  const char* start = strstr(text, "kernel void ");
  void (*begin)(const simt_t*);
  if (!start || sscanf(start, "kernel void %127[A-Za-z0-9_]", k->_name) != 1 ||
      !mkdtemp(folder)) {
    return false;
  }
  k->_parameters = count_of(start, "constant long& ");
  k->_arguments = count_of(start, "[[buffer(") - k->_parameters;
  snprintf(command, sizeof command, "%s/k.cpp", folder);
  FILE* f = fopen(command, "w");
  if (!f) return false;
  write_source(f, k, text);
  fclose(f);
  snprintf(command, sizeof command,
           "clang++-19 -std=c++17 -O1 -fPIC -shared -fvisibility=hidden "
           "-ffp-contract=off -fwrapv -march=native -Wno-everything "
           "-I%s/tests/shim -o %s/k.so %s/k.cpp",
           getenv("PESTLE_SOURCE_DIR"), folder, folder);
  bool ok = system(command) == 0;
  snprintf(command, sizeof command, "%s/k.so", folder);
  void* library = ok ? dlopen(command, RTLD_NOW | RTLD_LOCAL) : NULL;
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command) || !library) return false;
  *(void**)&k->_run = dlsym(library, "pestle_shim_run");
  *(void**)&begin = dlsym(library, "pestle_shim_init");
  if (!k->_run || !begin) return false;
  begin(&simt_functions);
  return true;
}

// --- Events ---

@implementation MTLSharedEventListener
@end

@interface FakeEvent : NSObject <MTLSharedEvent> {
 @public
  uint64_t _value;
}
@end

typedef struct notice_t {
  FakeEvent* event;
  uint64_t value;
  MTLSharedEventNotificationBlock block;
} notice_t;

static void wait_for(FakeEvent* event, uint64_t value) {
  pthread_mutex_lock(&lock);
  while (event->_value < value) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

static void* notify(void* data) {
  notice_t* n = data;
  wait_for(n->event, n->value);
  n->block(n->event, n->value);
  free(n);
  return NULL;
}

@implementation FakeEvent
- (uint64_t)signaledValue {
  pthread_mutex_lock(&lock);
  uint64_t value = _value;
  pthread_mutex_unlock(&lock);
  return value;
}
- (void)setSignaledValue:(uint64_t)value {
  pthread_mutex_lock(&lock);
  _value = value;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}
- (void)notifyListener:(MTLSharedEventListener*)listener
               atValue:(uint64_t)value
                 block:(MTLSharedEventNotificationBlock)block {
  notice_t* n = malloc(sizeof *n);
  pthread_t thread;
  if (!listener) abort();
  *n = (notice_t){self, value, kept(block)};
  pthread_create(&thread, NULL, notify, n);
  pthread_detach(thread);
}
@end

// --- Queues ---

enum { MOST_ARGUMENTS = 31, MOST_ACTIONS = 8 };

typedef struct action_t {
  FakeKernel* kernel;  // to run, or
  FakeEvent* event;    // to wait for or to signal
  bool signals;
  uint64_t value;
  void* buffer[MOST_ARGUMENTS];
  int64_t parameter[MOST_ARGUMENTS];
  uint32_t group[3], lane[3];
} action_t;

@class FakeQueue;
@interface FakeCommands
    : NSObject <MTLCommandBuffer, MTLComputeCommandEncoder> {
 @public
  FakeQueue* _queue;
  FakeCommands* _next;
  MTLCommandBufferStatus _status;
  NSError* _error;
  unsigned _count;
  bool _encodes;
  action_t _action[MOST_ACTIONS];
}
@end
@interface FakeQueue : NSObject <MTLCommandQueue> {
 @public
  FakeCommands *_first, *_last;
}
@end

static bool act(const action_t* a) {
  struct {
    void* const* buffers;
    const int64_t* params;
  } call = {a->buffer, a->parameter + (a->kernel ? a->kernel->_arguments : 0)};
  if (a->kernel) {
    pthread_mutex_lock(&running);
    bool ok = simt_run(a->group, a->lane, a->kernel->_run, &call);
    pthread_mutex_unlock(&running);
    return ok;
  }
  if (!a->signals) {
    wait_for(a->event, a->value);
  } else if (a->event.signaledValue < a->value) {
    a->event.signaledValue = a->value;
  }
  return true;
}

static void* work(void* data) {
  FakeQueue* q = data;
  for (;;) {
    pthread_mutex_lock(&lock);
    while (!q->_first) pthread_cond_wait(&changed, &lock);
    FakeCommands* c = q->_first;
    pthread_mutex_unlock(&lock);
    bool ok = true;
    for (unsigned i = 0; ok && i < c->_count; ++i) ok = act(&c->_action[i]);
    pthread_mutex_lock(&lock);
    q->_first = c->_next;
    if (!q->_first) q->_last = nil;
    c->_status =
        ok ? MTLCommandBufferStatusCompleted : MTLCommandBufferStatusError;
    if (!ok) c->_error = error_of("the lanes met different barriers");
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

@implementation FakeCommands
- (MTLCommandBufferStatus)status {
  pthread_mutex_lock(&lock);
  MTLCommandBufferStatus status = _status;
  pthread_mutex_unlock(&lock);
  return status;
}
- (NSError*)error {
  return _error;
}
- (id<MTLComputeCommandEncoder>)computeCommandEncoder {
  if (_encodes || _count == MOST_ACTIONS) abort();
  _encodes = true;
  return self;
}
- (void)encodeEvent:(id<MTLEvent>)event
              value:(uint64_t)value
            signals:(bool)signals {
  if (_encodes || _count == MOST_ACTIONS) abort();
  _action[_count].event = (FakeEvent*)event;
  _action[_count].value = value;
  _action[_count++].signals = signals;
}
- (void)encodeWaitForEvent:(id<MTLEvent>)event value:(uint64_t)value {
  [self encodeEvent:event value:value signals:false];
}
- (void)encodeSignalEvent:(id<MTLEvent>)event value:(uint64_t)value {
  [self encodeEvent:event value:value signals:true];
}
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state {
  _action[_count].kernel = (FakeKernel*)state;
}
- (void)setBuffer:(id<MTLBuffer>)buffer
           offset:(NSUInteger)offset
          atIndex:(NSUInteger)index {
  FakeBuffer* b = (FakeBuffer*)buffer;
  // Metal's validation refuses an offset past the last byte.
  if (index >= MOST_ARGUMENTS || offset >= b->_size) abort();
  _action[_count].buffer[index] = (char*)b->_data + offset;
}
- (void)setBytes:(const void*)bytes
          length:(NSUInteger)length
         atIndex:(NSUInteger)index {
  if (index >= MOST_ARGUMENTS || length != sizeof(int64_t)) abort();
  memcpy(&_action[_count].parameter[index], bytes, length);
}
- (void)dispatchThreadgroups:(MTLSize)groups
       threadsPerThreadgroup:(MTLSize)threads {
  action_t* a = &_action[_count++];
  const NSUInteger from[6] = {groups.width,  groups.height,  groups.depth,
                              threads.width, threads.height, threads.depth};
  for (int i = 0; i < 3; ++i) {
    a->group[i] = (uint32_t)from[i];
    a->lane[i] = (uint32_t)from[3 + i];
    if (!from[i] || !from[3 + i]) abort();
  }
  for (unsigned i = 0; i < a->kernel->_arguments; ++i) {
    if (!a->buffer[i]) abort();
  }
}
- (void)endEncoding {
  if (!_encodes) abort();
  _encodes = false;
}
- (void)commit {
  if (_encodes) abort();
  pthread_mutex_lock(&lock);
  if (_queue->_last) {
    _queue->_last->_next = self;
  } else {
    _queue->_first = self;
  }
  _queue->_last = self;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}
- (void)waitUntilCompleted {
  pthread_mutex_lock(&lock);
  while (_status != MTLCommandBufferStatusCompleted &&
         _status != MTLCommandBufferStatusError) {
    pthread_cond_wait(&changed, &lock);
  }
  pthread_mutex_unlock(&lock);
}
@end

@implementation FakeQueue
- (id<MTLCommandBuffer>)commandBuffer {
  FakeCommands* c = [FakeCommands new];
  c->_queue = self;
  return c;
}
@end

// --- The device ---

@implementation MTLCompileOptions
- (BOOL)fastMathEnabled {
  return _fast;
}
- (void)setFastMathEnabled:(BOOL)fast {
  _fast = fast;
}
@end

static unsigned char arena[512 << 20] __attribute__((aligned(64)));
static NSUInteger taken;

@interface FakeDevice : NSObject <MTLDevice>
@end
@implementation FakeDevice
- (NSString*)name {
  return [NSString stringWithUTF8String:"a CPU that stands for Apple's"];
}
- (uint64_t)recommendedMaxWorkingSetSize {
  return UINT64_C(1) << 30;
}
- (BOOL)supportsFamily:(MTLGPUFamily)family {
  return family == MTLGPUFamilyApple7;
}
- (id<MTLCommandQueue>)newCommandQueue {
  FakeQueue* q = [FakeQueue new];
  pthread_t thread;
  pthread_create(&thread, NULL, work, q);
  pthread_detach(thread);
  return q;
}
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length
                             options:(MTLResourceOptions)options {
  FakeBuffer* b = [FakeBuffer new];
  NSUInteger size = (length + 63) & ~(NSUInteger)63;
  (void)options;
  // One behind the other, so that the end of one is where another begins.
  pthread_mutex_lock(&lock);
  bool fits = size <= sizeof arena - taken;
  b->_data = arena + taken;
  b->_size = length;
  if (fits) taken += size;
  pthread_mutex_unlock(&lock);
  return fits ? b : nil;
}
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source
                               options:(MTLCompileOptions*)options
                                 error:(NSError**)error {
  FakeKernel* k = [FakeKernel new];
  if (options.fastMathEnabled) abort();
  if (build(k, source.UTF8String)) return k;
  *error = error_of("clang++ does not take it");
  return nil;
}
- (id<MTLComputePipelineState>)
    newComputePipelineStateWithFunction:(id<MTLFunction>)function
                                  error:(NSError**)error {
  (void)error;
  return (FakeKernel*)function;
}
- (id<MTLSharedEvent>)newSharedEvent {
  return [FakeEvent new];
}
@end

id<MTLDevice> MTLCreateSystemDefaultDevice(void) {
  return [FakeDevice new];
}
