// SPDX-License-Identifier: Apache-2.0
// Declarations of the parts of Apple's Foundation and libdispatch that
// plugins/metal/device.m uses, as their documentation has them: for a compiler
// to check its syntax and its types where there is no Mac. The variables are
// those of fake_metal.m.
#ifndef PESTLE_TESTS_SHIM_FOUNDATION_H_
#define PESTLE_TESTS_SHIM_FOUNDATION_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef signed char BOOL;
#define YES ((BOOL)1)
#define NO ((BOOL)0)
#define nil ((id)0)
typedef unsigned long NSUInteger;
typedef long NSInteger;
typedef const void* CFTypeRef;

@protocol NSObject
@end
__attribute__((objc_root_class))
@interface NSObject<NSObject> {
  Class isa;
}
+ (instancetype)alloc;
+ (instancetype)new;
- (instancetype)init;
@end

enum { NSUTF8StringEncoding = 4 };
@interface NSString : NSObject {
  char* _text;
}
@property(readonly) const char* UTF8String;
+ (instancetype)stringWithUTF8String:(const char*)text;
- (instancetype)initWithBytes:(const void*)bytes
                       length:(NSUInteger)length
                     encoding:(NSUInteger)encoding;
@end

@interface NSError : NSObject {
 @public
  NSString* _why;
}
@property(readonly, copy) NSString* localizedDescription;
@end

enum { MOST_OBJECTS = 4096 };
@interface NSMutableArray<T> : NSObject {
  __unsafe_unretained id _object[MOST_OBJECTS];
  NSUInteger _count;
}
@property(readonly) NSUInteger count;
- (T)objectAtIndex:(NSUInteger)index;
- (void)addObject:(T)object;
- (void)removeObjectAtIndex:(NSUInteger)index;
- (void)removeAllObjects;
@end

static inline CFTypeRef CFBridgingRetain(id object) {
  return (__bridge_retained CFTypeRef)object;
}
void CFRelease(CFTypeRef object);

@protocol OS_dispatch_semaphore <NSObject>
@end
typedef NSObject<OS_dispatch_semaphore>* dispatch_semaphore_t;
typedef uint64_t dispatch_time_t;
#define DISPATCH_TIME_FOREVER (~(dispatch_time_t)0)
dispatch_semaphore_t dispatch_semaphore_create(intptr_t value)
    __attribute__((ns_returns_retained));
intptr_t dispatch_semaphore_signal(dispatch_semaphore_t semaphore);
intptr_t dispatch_semaphore_wait(dispatch_semaphore_t semaphore,
                                 dispatch_time_t timeout);

#endif  // PESTLE_TESTS_SHIM_FOUNDATION_H_
