// SPDX-License-Identifier: Apache-2.0
// Recordings: what is queued on a stream between begin and end, as a graph of
// the driver. Other threads may call the driver as they like meanwhile.
#include "plugins/cuda/backend.h"

struct pestle_device_graph_s {
  const cuda_device_t* device;
  CUgraphExec run;
};

static pestle_status_t begin(pestle_device_stream_t* stream) {
  const cuda_device_t* d = stream->device;
  // Nothing is left behind that memory which is freed meanwhile would wait for.
  uint64_t queued = atomic_load(&stream->queued);
  PESTLE_CUDA_TRY(d, cuStreamSynchronize, (stream->handle));
  atomic_store(&stream->done, queued);
  PESTLE_CUDA_TRY(d, cuStreamBeginCapture_v2,
                  (stream->handle, CU_STREAM_CAPTURE_MODE_RELAXED));
  atomic_store(&stream->ends_in_kernel, false);
  atomic_store(&stream->recording, true);
  return NULL;
}

static pestle_status_t graph_begin(void* self, pestle_device_stream_t* stream) {
  (void)self;
  PESTLE_TRY(pestle_cuda_refuse_recording(stream, "another recording"));
  PESTLE_TRY(pestle_cuda_enter(stream->device));
  pestle_status_t status = begin(stream);
  pestle_cuda_leave(stream->device);
  return status;
}

static pestle_status_t instantiate(const pestle_device_stream_t* stream,
                                   CUgraph recorded,
                                   pestle_device_graph_t* graph) {
  const cuda_device_t* d = graph->device;
  PESTLE_CUDA_TRY(d, cuGraphInstantiateWithFlags, (&graph->run, recorded, 0));
  PESTLE_CUDA_TRY(d, cuGraphUpload, (graph->run, stream->handle));
  return NULL;
}

static void destroy(pestle_device_graph_t* graph) {
  const cuda_t* cuda = graph->device->owner;
  if (graph->run) (void)cuda->driver.cuGraphExecDestroy(graph->run);
  cuda->host->free(cuda->host->self, graph, sizeof *graph);
}

static pestle_status_t make_graph(pestle_device_stream_t* stream,
                                  CUgraph recorded,
                                  pestle_device_graph_t** out_graph) {
  const pestle_host_t* host = stream->device->owner->host;
  pestle_device_graph_t* graph = host->alloc(host->self, sizeof *graph);
  if (!graph) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "cuda: no host memory for a recording");
  }
  *graph = (pestle_device_graph_t){.device = stream->device};
  pestle_status_t status = instantiate(stream, recorded, graph);
  if (status) {
    destroy(graph);
    return status;
  }
  cuda_queued(stream);  // the upload
  *out_graph = graph;
  return NULL;
}

static pestle_status_t end(pestle_device_stream_t* stream,
                           pestle_device_graph_t** out_graph) {
  const cuda_device_t* d = stream->device;
  CUgraph recorded = NULL;
  CUresult result =
      d->owner->driver.cuStreamEndCapture(stream->handle, &recorded);
  // What was counted while it was recorded was never queued.
  atomic_store(&stream->done, atomic_load(&stream->queued));
  atomic_store(&stream->recording, false);
  if (result) {
    return pestle_cuda_failed(d, result, __FILE__, __LINE__,
                              "cuStreamEndCapture");
  }
  pestle_status_t status = make_graph(stream, recorded, out_graph);
  (void)d->owner->driver.cuGraphDestroy(recorded);
  return status;
}

static pestle_status_t graph_end(void* self, pestle_device_stream_t* stream,
                                 pestle_device_graph_t** out_graph) {
  *out_graph = NULL;
  if (!atomic_load(&stream->recording)) {
    return PESTLE_PLUGIN_ERROR(((cuda_t*)self)->host, INVALID_ARGUMENT,
                               "cuda: a recording ends that did not begin");
  }
  PESTLE_TRY(pestle_cuda_enter(stream->device));
  pestle_status_t status = end(stream, out_graph);
  pestle_cuda_leave(stream->device);
  return status;
}

static pestle_status_t run(const pestle_device_graph_t* graph,
                           pestle_device_stream_t* stream) {
  PESTLE_CUDA_TRY(stream->device, cuGraphLaunch, (graph->run, stream->handle));
  cuda_queued(stream);
  return NULL;
}

static pestle_status_t graph_launch(void* self, pestle_device_graph_t* graph,
                                    pestle_device_stream_t* stream) {
  (void)self;
  PESTLE_TRY(pestle_cuda_refuse_recording(stream, "another recording"));
  PESTLE_TRY(pestle_cuda_enter(stream->device));
  pestle_status_t status = run(graph, stream);
  pestle_cuda_leave(stream->device);
  return status;
}

static void graph_destroy(void* self, pestle_device_graph_t* graph) {
  (void)self;
  if (graph) destroy(graph);
}

void pestle_cuda_graph_slots(pestle_device_api_t* api) {
  api->graph_begin = graph_begin;
  api->graph_end = graph_end;
  api->graph_launch = graph_launch;
  api->graph_destroy = graph_destroy;
}
