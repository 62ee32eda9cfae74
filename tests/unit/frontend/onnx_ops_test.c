// SPDX-License-Identifier: Apache-2.0
// Importers against numbers that onnx.reference gave for the same nodes: small
// ones, so that the suite needs neither Python nor ONNX's own cases.
#include "onnx_case.h"

static void test_losses(void** state) {
  (void)state;
  onnx_case("NegativeLogLikelihoodLoss", 13, "reduction:none",
            "f32[2,3,2]=-1.75,1.125,-0.25,0.875,1.875,0.125,0,-1.75,-0.875,"
            "-0,0.75,1.25 i64[2,2]=0,2,1,1",
            "f32[2,2]=1.75,-0.125,0.875,0");
  onnx_case("NegativeLogLikelihoodLoss", 13, "",
            "f32[3,4]=-1.75,1.125,-0.25,0.875,1.875,0.125,0,-1.75,-0.875,-0,"
            "0.75,1.25 i64[3]=3,0,2 f32[4]=2,1.25,2,1.5",
            "f32[]=-1.193182");
  onnx_case("NegativeLogLikelihoodLoss", 13, "ignore_index=-7 reduction:sum",
            "f32[3,4]=-1.75,1.125,-0.25,0.875,1.875,0.125,0,-1.75,-0.875,-0,"
            "0.75,1.25 i64[3]=-7,0,2",
            "f32[]=-2.625");
  onnx_case("NegativeLogLikelihoodLoss", 13, "ignore_index=1",
            "f32[2,3,2]=-1.75,1.125,-0.25,0.875,1.875,0.125,0,-1.75,-0.875,"
            "-0,0.75,1.25 i64[2,2]=0,1,1,2 f32[3]=1,2,0.5",
            "f32[]=0.75");
  onnx_case("SoftmaxCrossEntropyLoss", 13, "reduction:mean",
            "f32[3,4]=-1.75,1.125,-0.25,0.875,1.875,0.125,0,-1.75,-0.875,-0,"
            "0.75,1.25 i64[3]=3,0,2",
            "f32[]=0.8294983 f32[3,4]=-3.611234,-0.7362338,-2.111234,"
            "-0.9862338,-0.3028993,-2.052899,-2.177899,-3.927899,-2.824362,"
            "-1.949362,-1.199362,-0.699362");
  onnx_case("SoftmaxCrossEntropyLoss", 13, "reduction:sum ignore_index=5",
            "f32[1,3,2,2]=1.5,1.875,1.5,0.125,-1.125,-2,-0.25,-0.375,0.125,"
            "-0.125,0.25,0.125 i64[1,2,2]=0,5,2,1 f32[3]=1,2,0.5",
            "f32[]=4.011977 f32[1,3,2,2]=-0.2816232,-0.1450433,-0.3786274,"
            "-0.9580201,-2.906623,-4.020043,-2.128627,-1.45802,-1.656623,"
            "-2.145043,-1.628627,-0.9580201");
  onnx_case("SoftmaxCrossEntropyLoss", 13, "reduction:none",
            "f32[2,3]=-1.125,1.5,-1.125,1.625,-0,0.5 i32[2]=2,0",
            "f32[2]=2.760299,0.4197388");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_losses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
