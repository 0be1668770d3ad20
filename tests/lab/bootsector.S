# Boot sector of the lab's master image: proves by itself which disk a machine has started.
#
# On the first serial port it prints "boot sector on drive NN", then, read through the firmware's INT 13h (so over
# iSCSI), the text that lies in sector 1 of the same disk, and halts.
#
# The bytes in lab_master.py are made by
#   as --32 -o b.o bootsector.S && ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o b.bin b.o

        .code16
        .globl  _start
_start: ljmp    $0, $begin
begin:  xorw    %ax, %ax
        movw    %ax, %ds
        movw    %ax, %ss
        movw    $0x7c00, %sp
        movb    %dl, %bl                # the firmware's number of this drive
        movw    $hello, %si
        call    text
        movb    %bl, %al
        shrb    $4, %al
        call    digit
        movb    %bl, %al
        andb    $15, %al
        call    digit
        movw    $newline, %si
        call    text

        movw    $packet, %si            # INT 13h, extended read of one sector to 0x8000
        movb    %bl, %dl
        movb    $0x42, %ah
        int     $0x13
        movw    $failed, %si
        jc      last
        movw    $0x8000, %si
last:   call    text
stop:   hlt
        jmp     stop

digit:  cmpb    $10, %al                # one hexadecimal digit
        sbbb    $0x69, %al
        das
send:   movw    $0x3fd, %dx             # one character, when the line is ready
        xchgb   %al, %ah
wait:   inb     %dx, %al
        testb   $0x20, %al
        jz      wait
        xchgb   %al, %ah
        movw    $0x3f8, %dx
        outb    %al, %dx
        ret

text:   cld                             # a text that ends with a zero byte
next:   lodsb
        testb   %al, %al
        jz      done
        call    send
        jmp     next
done:   ret

hello:  .asciz  "\r\nboot sector on drive "
failed: .asciz  "sector 1 cannot be read"
newline: .asciz "\r\n"
        .balign 4
packet: .byte   16, 0
        .word   1, 0x8000, 0
        .quad   1

        .org    510
        .word   0xaa55
