# forewarp with PoCL, OpenCL on the processor: `docker build -t forewarp .`, then
# `docker run --rm -v "$PWD:/work" forewarp tune program.fw -s N=4096`. With NVIDIA's container
# toolkit, `--gpus all` and `-d cuda:0` (an image that has NVRTC as the base: --build-arg BASE=nvidia/cuda:13.0.1-devel-ubuntu24.04).
ARG BASE=debian:12
FROM ${BASE} AS build
RUN apt-get update && apt-get install -y --no-install-recommends make gcc libc6-dev binutils
COPY . /src
WORKDIR /src
RUN tools/deps build && make -j"$(nproc)" all lib MPI= && make install DESTDIR=/made PREFIX=/usr MPI=

FROM ${BASE}
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev libgomp1 libsqlite3-0 libjansson4 \
        zlib1g ocl-icd-libopencl1 liblapacke libisl23 libgmp10 pocl-opencl-icd && rm -rf /var/lib/apt/lists/*
COPY --from=build /made/ /
WORKDIR /work
ENTRYPOINT ["forewarp"]
