// A function that the collector does not know fails; then the program asks for the error's text itself.
#include <stdio.h>
int hipNewerThanRoctop(void);
const char *hipGetErrorString(int);

int main(void) {
  for (int i = 0; i < 3; i++) printf("%d\n", hipNewerThanRoctop());
  puts(hipGetErrorString(2));
  return 0;
}
