// SPDX-License-Identifier: Apache-2.0
// An application that uses the installed library; valid C and C++.
#include <stdio.h>
#include <string.h>

#include "pestle/pestle.h"
#include "pestle/version.h"

int main(void) {
  if (strcmp(pestle_version(), PESTLE_VERSION_STRING) != 0) return 1;
  pestle_context_t* context = NULL;
  pestle_status_t status = pestle_context_create(NULL, &context);
  if (status) {
    fprintf(stderr, "%s\n", pestle_status_message(status));
    pestle_status_release(status);
    return 1;
  }
  pestle_context_release(context);
  printf("pestle %s, build %s\n", pestle_version(), pestle_build_id());
  return 0;
}
