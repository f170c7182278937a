/* The witness: one work-item that stores the GPU's constant-rate clock at its begin, spins, and stores it at its end.
 *
 * out[0] begin, out[1] end, out[2] the kernel's number; mark[0] the number, too: a later kernel of the queue overwrites it. */
typedef unsigned long ticks;

__attribute__((reqd_work_group_size(1, 1, 1)))
kernel void roctop_spin(global volatile ticks *out, ticks length, global volatile ticks *mark, ticks number)
{
    ticks begin = __builtin_readsteadycounter();
    out[0] = begin;
    ticks now = begin;
    while (now - begin < length) {
        __builtin_amdgcn_s_sleep(1);
        now = __builtin_readsteadycounter();
    }
    out[1] = now;
    out[2] = number;
    mark[0] = number;
}
