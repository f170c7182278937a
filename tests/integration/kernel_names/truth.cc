// Demangles each line as the C++ run-time library does.

#include <cxxabi.h>

#include <cstdlib>
#include <iostream>
#include <string>

int main() {
    std::string symbol;
    while (std::getline(std::cin, symbol)) {
        int status = 0;
        char *name = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
        std::cout << (name ? name : symbol.c_str()) << '\n';
        std::free(name);
    }
}
