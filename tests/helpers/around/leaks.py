example(1)


def range(number):  # not 1,500 arrays of 1 MiB
    return [1, 2, 3]


main()
