// A program that notes its signals, and ways of starting one.
//   sigs note REPORT          catches all signals and appends a line with the number of each; the last one ends it with 5
//   sigs timeout FIFO WORDS   starts a program; for each byte in FIFO, sends it that signal and then the group, as timeout(1) does
//   sigs as I B C WORDS       becomes a program, with these signals ignored (I), blocked (B) and descriptors closed (C): 1,2
//   sigs slow SIGNAL PIDS     signals these processes, and works for 0.3 s between two, as if another process had its CPU
//   sigs show REPORT          writes which signals are ignored and blocked, and which standard streams are open
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int report;

static void put(int number) {
  char line[16];
  int length = snprintf(line, sizeof line, "%d\n", number);
  if (write(report, line, (size_t)length) < 0) _exit(9);
}

static void note(int number) {
  put(number);
  if (number == SIGRTMAX) _exit(5);
}

static int run_note(const char *path) {
  report = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
  struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
  // One after the other, so that the last is the last.
  sigfillset(&action.sa_mask);
  for (int number = 1; number < 65; number++)
    if (number != SIGTSTP && number != SIGTTIN && number != SIGTTOU) sigaction(number, &action, NULL);
  put(getpid());
  for (;;) pause();
}

static int run_timeout(const char *fifo, char **words) {
  setpgid(0, 0);
  pid_t child = fork();
  if (child == 0) {
    execvp(words[0], words);
    _exit(127);
  }
  char byte;
  int from = open(fifo, O_RDONLY);
  while (from >= 0 && read(from, &byte, 1) == 1) {
    int number = byte;
    signal(number, SIG_IGN);
    kill(child, number);
    kill(0, number);
  }
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void each(char *list, void (*act)(int)) {
  for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) act(atoi(word));
}

static void ignore(int number) { signal(number, SIG_IGN); }

static void block(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, NULL);
}

static void shut(int number) { close(number); }

static int run_as(char **words) {
  // What the test itself was started with does not count.
  for (int number = 1; number < 65; number++) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  each(words[0], ignore);
  each(words[1], block);
  each(words[2], shut);
  execvp(words[3], words + 3);
  return 127;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int run_slow(int number, char **pids) {
  for (int at = 0; pids[at]; at++) {
    double until = now() + (at ? 0.3 : 0);
    while (now() < until) continue;
    kill(atoi(pids[at]), number);
  }
  return 0;
}

static int run_show(const char *path) {
  int open_streams = 0;
  for (int stream = 0; stream < 3; stream++)
    if (fcntl(stream, F_GETFD) >= 0) open_streams |= 1 << stream;
  FILE *out = fopen(path, "w");
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, NULL, &blocked);
  for (int number = 1; number < 65; number++) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN) fprintf(out, "ignored %d\n", number);
    if (sigismember(&blocked, number) == 1) fprintf(out, "blocked %d\n", number);
  }
  for (int stream = 0; stream < 3; stream++)
    if (open_streams >> stream & 1) fprintf(out, "open %d\n", stream);
  return fclose(out);
}

int main(int count, char **words) {
  if (count > 2 && !strcmp(words[1], "note")) return run_note(words[2]);
  if (count > 3 && !strcmp(words[1], "timeout")) return run_timeout(words[2], words + 3);
  if (count > 5 && !strcmp(words[1], "as")) return run_as(words + 2);
  if (count > 3 && !strcmp(words[1], "slow")) return run_slow(atoi(words[2]), words + 3);
  if (count > 2 && !strcmp(words[1], "show")) return run_show(words[2]);
  return 2;
}
